package typed

import (
	"github.com/dunlinhttp/dunlin"
)

// An input that is a JSON body and nothing else needs no binder, and no memory that
// outlives the call: it is decoded where the action's argument is made. What that
// decoder refuses, and a body whose media type is not written as usual, is read again by
// the binder, which knows why.

// directPlan is the way of such an input.
type directPlan struct {
	onePassDecoder
	offset uintptr
}

// mostDirect is how large an input may be, in bytes, to lie on a stack twice.
const mostDirect = 1 << 10

// direct returns the way of the input, nil when it needs a binder.
func (p *plan) direct() *directPlan {
	if p.body == nil || p.body.raw || p.body.optional || len(p.params) > 0 || p.checks != nil || p.runsCode || p.typ.Size() > mostDirect {
		return nil
	}
	one, ok := p.body.decoder.(onePassDecoder)
	if !ok || !one.decoder.Contained() {
		return nil
	}
	return &directPlan{one, p.body.offset}
}

// bind decodes the body into the input at the place, which may be on a stack. Neither
// bound nor with an error it is for the binder.
func (d *directPlan) bind(r *dunlin.Request, s *appState, in place) (bound bool, err error) {
	if r.Header("Content-Type") != mediaJSON {
		return false, nil
	}
	body, err := r.Bytes()
	if err != nil {
		return false, err
	}
	return in.at(d.offset).decode(d.decoder, body, d.limits(s)), nil
}
