package typed

import (
	"github.com/dunlinhttp/dunlin"
)

// An input that consists of only a JSON body needs no binder and no memory that remains after the
// call: the body is decoded into the argument of the action. If the decoder refuses the body, or if
// the media type has an unusual spelling, a binder reads the request again and reports the reason.

// directPlan decodes such an input.
type directPlan struct {
	onePassDecoder
	offset uintptr
}

// maxDirect is the maximum size in bytes of an input that is decoded on the stack. The stack
// contains the input twice.
const maxDirect = 1 << 10

// direct returns the directPlan of the input type, or nil if the input needs a binder.
func (p *plan) direct() *directPlan {
	if p.body == nil || p.body.raw || p.body.optional || len(p.params) > 0 || p.checks != nil || p.runsCode || p.typ.Size() > maxDirect {
		return nil
	}
	one, ok := p.body.decoder.(onePassDecoder)
	if !ok || !one.decoder.Contained() {
		return nil
	}
	return &directPlan{one, p.body.offset}
}

// bind decodes the body into the input at the address, which may be on a stack. If it returns false
// without an error, a binder must read the request.
func (d *directPlan) bind(r *dunlin.Request, s *appState, in address) (bound bool, err error) {
	if r.Header("Content-Type") != mediaJSON {
		return false, nil
	}
	body, err := r.Bytes()
	if err != nil {
		return false, err
	}
	if in.at(d.offset).decode(d.decoder, body, d.limits(s), r) {
		return true, nil
	}
	return false, r.ReserveMemory(0) // an error if the decoder refused the body because there was no memory
}
