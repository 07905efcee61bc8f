package typed

import (
	"bytes"
	"reflect"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A bodyDecoder decodes JSON into the field Body, and adds violations to the report of the binder.
type bodyDecoder interface {
	decode(b *binder, p *bodyPlan, body []byte, to address)
}

// newBodyDecoder returns a decoder for a type of body. The decoder reads the body once and checks the
// rules while it decodes, if the type permits this. Otherwise the result is a plainDecoder.
func newBodyDecoder(n *schema.Node, t reflect.Type, i ignores) (bodyDecoder, error) {
	if own, err := schema.Of(t); err != nil || own != n {
		return compileDecoder(n, t, i)
	}
	key := bodyDecoderKey{t, i}
	if d, ok := bodyDecoders.Load(key); ok {
		return d.(bodyDecoder), nil
	}
	made, err := compileDecoder(n, t, i)
	if err != nil {
		return nil, err
	}
	d, _ := bodyDecoders.LoadOrStore(key, made)
	return d.(bodyDecoder), nil
}

// bodyDecoders caches decoders by bodyDecoderKey, because many operations share a type of body. A field
// Body with rules in its own tag has a decoder of its own.
var bodyDecoders sync.Map

type bodyDecoderKey struct {
	typ     reflect.Type
	ignores ignores
}

func compileDecoder(n *schema.Node, t reflect.Type, i ignores) (bodyDecoder, error) {
	plain := plainDecoder{ignores: i}
	some, all := n.IgnoresUnknown(i.unknown)
	if i.readOnly || some {
		var err error
		if plain.ignoring, err = schema.IgnoringDecoder(t, i.readOnly); err != nil {
			return nil, err
		}
	}
	d, err := n.Decoder(t, i.readOnly)
	if err != nil {
		return plain, nil
	}
	return onePassDecoder{d, plain, all}, nil
}

// onePassDecoder decodes valid bodies in one pass. If it refuses a body, plainDecoder reads the body again
// and reports the reason.
type onePassDecoder struct {
	decoder *jsonwire.Decoder
	plain   plainDecoder
	loose   bool // every struct accepts unknown members; if only some do, the decoder refuses all unknown members
}

func (o *onePassDecoder) limits(s *appState) *jsonwire.Limits {
	if o.loose {
		return &s.loose
	}
	return &s.limits
}

func (o onePassDecoder) decode(b *binder, p *bodyPlan, body []byte, to address) {
	null := p.optional && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("null")) // a pointer would accept null
	if null || !to.decode(o.decoder, body, o.limits(b.state), b.r) {
		to.value(p.typ).SetZero()
		if b.reserves(0) {
			o.plain.decode(b, p, body, to)
		}
	}
}

// copies reserves n bytes for a copy of the body. It reserves nothing for a small copy. It returns false
// if there is no memory.
func (b *binder) copies(n int) bool { return n <= smallCopy || b.reserves(n) }

// smallCopy is the maximum size in bytes of a copy of the body for which no memory is reserved.
const smallCopy = 64 << 10

// reserves reserves n bytes for values of the body. If there is no memory, or if an earlier reservation
// failed, it stores the error in b.err and returns false.
func (b *binder) reserves(n int) bool {
	b.err = b.r.ReserveMemory(int64(n))
	return b.err == nil
}

// plainDecoder first checks the text against the schema, and then decodes it as encoding/json does. If
// members are ignored, it uses another decoder that matches names exactly. encoding/json ignores case, so
// it would store an unknown member whose name differs only in case in a known field, without a check of
// the field's rules.
type plainDecoder struct {
	ignores  ignores
	ignoring *jsonwire.Decoder // nil if no member is ignored
}

func (d plainDecoder) decode(b *binder, p *bodyPlan, body []byte, to address) {
	if b.report.Full() {
		return
	}
	before := len(b.report.List)
	b.report.MaxElements, b.report.Request, b.report.Room = b.state.limits.MaxElements, b.r, b.r
	b.report.IgnoreReadOnly, b.report.IgnoreUnknown = d.ignores.readOnly, d.ignores.unknown
	body = p.node.Check(body, "body", &b.report)
	b.report.Request, b.report.Room = nil, nil
	if b.report.Ended {
		if b.reserves(0) {
			b.err = b.r.Context().Err()
		}
		return
	}
	if len(b.report.List) > before {
		return
	}
	decoder, limits := d.ignoring, schema.IgnoringLimits
	if decoder == nil {
		decoder, limits = jsonwire.DecoderFor(p.typ), jsonwire.Limits{}
	}
	if !decoder.Try(body, to.value(p.typ).Addr().Interface(), limits, b.r) && b.reserves(0) {
		b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "type", Message: "cannot be read"})
	}
}
