package typed

import (
	"github.com/dunlinhttp/dunlin"
)

// An input that consists of a JSON body only needs no binder, and no memory that outlives the call:
// it is decoded into the argument of the action. A body that this decoder refuses, and a body with
// an unusual spelling of its media type, is read again by the binder, which reports the reason.

// directPlan decodes such an input.
type directPlan struct {
	onePassDecoder
	offset uintptr
}

// maxDirect is the maximum size of an input, in bytes, that is decoded on the stack. The input is
// there twice.
const maxDirect = 1 << 10

// direct returns the directPlan of the input, or nil if the input needs a binder.
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
// and no error, the binder must read the request.
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
	return false, r.ReserveMemory(0) // there may have been no room
}
