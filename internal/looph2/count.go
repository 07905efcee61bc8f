//go:build linux

package looph2

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter batches a driver's counts of requests by route. Consecutive requests of one call with the same outcome are counted
// together at the end of the call, when their responses are sent.
type counter struct {
	on      bool
	since   int64 // start of the current call, on the engine's clock
	counts  *exchange.RouteCounts
	outcome tally.Outcome
	n       uint64 // requests not counted yet
}

func (k *counter) begin(h *Handler, d *engine.Driver) {
	k.on, k.since = h.server.Counting.Load(), d.Arrived()
}

// outcome returns the counted outcome of the request.
func (x *Wire) outcome(a *exchange.Answer) tally.Outcome {
	return x.s.Outcome(a, x.h.server.Secure(x))
}

// countAnswer counts a request that was answered on the loop.
func (sc *Scratch) countAnswer(d *engine.Driver, counts *exchange.RouteCounts, outcome tally.Outcome) {
	k := &sc.count
	switch {
	case !k.on:
	case counts == k.counts && outcome == k.outcome:
		k.n++
	default:
		sc.flushCount(d)
		k.counts, k.outcome, k.n = counts, outcome, 1
	}
}

// flushCount adds the batch to the route's counts.
func (sc *Scratch) flushCount(d *engine.Driver) {
	k := &sc.count
	if k.n == 0 {
		return
	}
	k.counts.Shard(d.Loop()).Add(k.outcome, k.n, time.Duration(d.Clock()-k.since))
	k.n = 0
}

// countInFlight counts the current request as in flight. Requests that the loop answers at once never are.
func (x *Wire) countInFlight(counts *exchange.RouteCounts) {
	if x.h.server.Counting.Load() && x.inFlight == nil {
		shard := counts.Shard(0)
		shard.InFlight.Add(1)
		x.inFlight = shard
	}
}

// endInFlight ends the count of countInFlight.
func (x *Wire) endInFlight() {
	if x.inFlight != nil {
		x.inFlight.InFlight.Add(-1)
		x.inFlight = nil
	}
}

// countElsewhere counts a request that was answered on another goroutine.
func (x *Wire) countElsewhere(counts *exchange.RouteCounts, outcome tally.Outcome) {
	if x.h.server.Counting.Load() {
		counts.Shard(0).Add(outcome, 1, x.took())
	}
}

// took returns the time since the current request began.
func (x *Wire) took() time.Duration { return time.Duration(x.now() - x.since) }
