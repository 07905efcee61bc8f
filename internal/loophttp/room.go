//go:build linux

package loophttp

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A route shows by its answers how much of them clients leave at first (Route.Pends): about the
// most, falling with each that leaves less; and of which requests they leave much (Route.Large). What is asked for
// besides may be small: it may begin as a probe where there is no room.
const (
	// muchPending is the pending output from which a request is not begun without room for it.
	muchPending = 64 << 10
	// pendsDecay says by which part, one in so many, the estimate falls with each request.
	pendsDecay = 16
)

// Pended notes that the answer to the latest request was not taken at once.
func (h *handler) Pended(d *engine.Driver, bytes int64) {
	d.Scratch.(*wire).c.Notes &^= engine.Prompt
	x := d.Scratch.(*wire)
	route := x.s.Route
	if route == nil {
		return
	}
	if bytes > route.Pends.Load() {
		route.Pends.Store(bytes)
	}
	if x.target != 0 && bytes > muchPending {
		route.Large.Note(x.target, true)
	}
}

// answered notes that what was asked for last is here in full, and was not large, if nothing before it was either.
func (x *wire) answered() {
	if x.d.Gathered() <= muchPending {
		x.s.Route.Large.Note(x.target, false)
	}
}

// expectsMuch reports whether the request's answer is expected to be held for long enough, and
// to be so large, that there must be room for it first. What others leave says nothing of a
// client that has taken such an answer at once.
func (x *wire) expectsMuch() bool {
	route := x.s.Route
	return route.Pends.Load() > muchPending && !route.Critical && x.c.Notes&engine.Prompt == 0 && x.head.Method != http1.MethodHead
}

// awaitRoom asks for room for what the answer will leave. When it is done the request was
// refused, or waits.
func (x *wire) awaitRoom() (next progress, done bool) {
	p := &x.s.Route.Pends
	n := p.Load()
	server := x.handler.server
	if bound := server.Budget.Bound(); bound > 0 {
		// One answer may be larger. Those who hold little may hold much of the budget for long; what
		// is within Fair could not wait.
		n = min(n, max(bound/4, server.Holders.Fair()+1))
	}
	if most := server.Holders.MaxAddress; most > 0 {
		n = min(n, most)
	}
	x.target = x.s.Target()
	likely := !x.s.Route.Large.Large(x.target)
	if x.c.Notes &^= engine.Probes; likely {
		x.c.Notes |= engine.Probes
	}
	switch x.d.ReserveRoom(x.c, n) {
	case admission.MustWait:
		return needRoom, true
	case admission.NoRoom:
		x.target = 0
		met := x.c.Met()
		server.NoteNoMemory("requests whose answers are large", x.s.Route.Pattern, met)
		x.closing = x.closing || x.streaming
		return x.refuseWhole(server.Pipeline.Answer(server.Pipeline.NoMemory("the answer", met)), exchange.FromMemory), true
	}
	if x.c.Account().Probing() {
		if !x.d.Inline() {
			x.c.ProbeBlocks() // as actions of its route do
		}
		return 0, false // its answer says nothing of those that had to wait
	}
	x.c.Notes |= engine.Prompt // until Pended
	p.Add(-p.Load() / pendsDecay)
	return 0, false
}
