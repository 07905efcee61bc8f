package typed

import (
	"encoding/json"
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A bodyDecoder reads JSON into the field Body and reports what is wrong with it.
type bodyDecoder interface {
	decode(b *binder, p *bodyPlan, body []byte, to place)
}

func newBodyDecoder(*schema.Node, reflect.Type) (bodyDecoder, error) { return plainDecoder{}, nil }

// plainDecoder checks the text, then has encoding/json decode it.
type plainDecoder struct{}

func (plainDecoder) decode(b *binder, p *bodyPlan, body []byte, to place) {
	before := len(b.report.List)
	body = p.node.Check(body, "body", &b.report)
	if len(b.report.List) > before {
		return
	}
	if err := json.Unmarshal(body, to.value(p.typ).Addr().Interface()); err != nil {
		b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "type", Message: "cannot be read"})
	}
}
