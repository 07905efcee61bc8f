//go:build linux

package loophttp

import (
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// A route learns from its answers how much output is pending at first (Route.Pends): an estimate near the maximum that falls
// with each smaller value.
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
}

// expectsMuch reports whether the request must wait for memory, because its answer is expected to be large and pending for
// long. The estimate does not apply to a client that has accepted such an answer at once.
func (x *wire) expectsMuch() bool {
	route := x.s.Route
	return route.Pends.Load() > muchPending && !route.Critical && x.c.Notes&engine.Prompt == 0 && x.head.Method != semantics.MethodHead
}

// awaitRoom reserves memory for the expected pending output. If done is set, the request was refused or waits.
func (x *wire) awaitRoom() (next progress, done bool) {
	p, server := &x.s.Route.Pends, x.handler.server
	switch x.d.ReserveRoom(x.c, server.Room(p.Load())) {
	case memory.MustWait:
		return needRoom, true
	case memory.NoRoom:
		met := x.c.Met()
		server.NoteNoMemory("requests whose answers are large", x.s.Route.Pattern, met)
		x.closing = x.closing || x.streaming
		return x.refuseWhole(server.Pipeline.Answer(server.Pipeline.NoMemory("the answer", met)), exchange.FromMemory), true
	}
	x.c.Notes |= engine.Prompt // until Pended
	p.Add(-p.Load() / pendsDecay)
	return 0, false
}
