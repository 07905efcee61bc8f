//go:build linux

package loophttp

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// A route learns from its answers how much output is pending at first (Route.Pends): an estimate near the maximum that falls
// with each smaller value. It also learns which requests have much pending output (Route.Large). Other requests may have a
// small answer: without free memory, they may begin as a probe.
const (
	// muchPending is the pending output, in bytes, from which a request must wait for memory.
	muchPending = 64 << 10
	// pendsDecay makes the estimate fall by 1/pendsDecay with each request.
	pendsDecay = 16
)

// Pended records that the client did not accept the latest answer at once.
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

// answered records that the latest answer was not large, unless it is gathered together with much output of earlier answers.
func (x *wire) answered() {
	if x.d.Gathered() <= muchPending {
		x.s.Route.Large.Note(x.target, false)
	}
}

// expectsMuch reports whether the request must wait for memory, because its answer is expected to be large and pending for
// long. The estimate does not apply to a client that has accepted such an answer at once.
func (x *wire) expectsMuch() bool {
	route := x.s.Route
	return route.Pends.Load() > muchPending && !route.Critical && x.c.Notes&engine.Prompt == 0 && x.head.Method != semantics.MethodHead
}

// awaitRoom reserves memory for the expected pending output. If done is set, the request was refused or waits.
func (x *wire) awaitRoom() (next progress, done bool) {
	p := &x.s.Route.Pends
	n := p.Load()
	server := x.handler.server
	if bound := server.Budget.Bound(); bound > 0 {
		// A single answer may be larger. The reservation exceeds Fair, because one within Fair never waits, and small holders
		// together may hold much of the budget for long.
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
		return 0, false // its answer is no measure for requests that had to wait
	}
	x.c.Notes |= engine.Prompt // until Pended
	p.Add(-p.Load() / pendsDecay)
	return 0, false
}
