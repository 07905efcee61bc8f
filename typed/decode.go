package typed

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A bodyDecoder reads JSON into the field Body and reports what is wrong with it.
type bodyDecoder interface {
	decode(b *binder, p *bodyPlan, body []byte, to place)
}

// newBodyDecoder returns a decoder that reads a body once and looks at its rules on
// the way, if the type has one.
func newBodyDecoder(n *schema.Node, t reflect.Type) bodyDecoder {
	if own, err := schema.Of(t); err != nil || own != n {
		return compileDecoder(n, t)
	}
	if d, ok := bodyDecoders.Load(t); ok {
		return d.(bodyDecoder)
	}
	d, _ := bodyDecoders.LoadOrStore(t, compileDecoder(n, t))
	return d.(bodyDecoder)
}

// bodyDecoders keeps the decoders of types, many operations having bodies of one: by
// reflect.Type. Fields with rules of their own have decoders of their own.
var bodyDecoders sync.Map

func compileDecoder(n *schema.Node, t reflect.Type) bodyDecoder {
	d, err := n.Decoder(t)
	if err != nil {
		return plainDecoder{}
	}
	return onePassDecoder{d}
}

// onePassDecoder leaves what it refuses to plainDecoder, which knows why.
type onePassDecoder struct{ decoder *jsonwire.Decoder }

func (o onePassDecoder) decode(b *binder, p *bodyPlan, body []byte, to place) {
	null := p.optional && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("null")) // which a pointer would take
	if null || !to.decode(o.decoder, body, &b.state.limits) {
		to.value(p.typ).SetZero()
		plainDecoder{}.decode(b, p, body, to)
	}
}

// plainDecoder checks the text, then has encoding/json decode it.
type plainDecoder struct{}

func (plainDecoder) decode(b *binder, p *bodyPlan, body []byte, to place) {
	if b.report.Full() {
		return
	}
	before := len(b.report.List)
	b.report.MaxElements, b.report.Request = b.state.limits.MaxElements, b.r
	body = p.node.Check(body, "body", &b.report)
	b.report.Request = nil
	if b.report.Ended {
		b.err = b.r.Context().Err()
		return
	}
	if len(b.report.List) > before {
		return
	}
	if err := json.Unmarshal(body, to.value(p.typ).Addr().Interface()); err != nil {
		b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "type", Message: "cannot be read"})
	}
}
