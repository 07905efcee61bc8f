//go:build linux

package looph2

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter counts a driver's requests by route. Equal outcomes that one call produces on the loop in a row are counted
// together when the call ends, since their answers are sent together.
type counter struct {
	on      bool
	since   int64 // start of the present call, on the engine's clock
	counts  *exchange.RouteCounts
	outcome tally.Outcome
	n       uint64 // requests not yet counted
}

func (k *counter) begin(h *Handler, d *engine.Driver) {
	k.on, k.since = h.server.Counting.Load(), d.Arrived()
}

// outcome returns the outcome under which the request is counted.
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

// flushCount passes on the requests not yet counted.
func (sc *Scratch) flushCount(d *engine.Driver) {
	k := &sc.count
	if k.n == 0 {
		return
	}
	k.counts.Shard(d.Loop()).Add(k.outcome, k.n, time.Duration(d.Clock()-k.since))
	k.n = 0
}

// countInFlight counts the present request as in flight. Requests that are answered at once on a loop never are.
func (x *Wire) countInFlight(counts *exchange.RouteCounts) {
	if x.h.server.Counting.Load() && x.inFlight == nil {
		shard := counts.Shard(0)
		shard.InFlight.Add(1)
		x.inFlight = shard
	}
}

// endInFlight reverts countInFlight.
func (x *Wire) endInFlight() {
	if x.inFlight != nil {
		x.inFlight.InFlight.Add(-1)
		x.inFlight = nil
	}
}

// countElsewhere counts a request that was answered off the loop.
func (x *Wire) countElsewhere(counts *exchange.RouteCounts, outcome tally.Outcome) {
	if x.h.server.Counting.Load() {
		counts.Shard(0).Add(outcome, 1, x.took())
	}
}

// took returns the time that the present request has taken.
func (x *Wire) took() time.Duration { return time.Duration(x.now() - x.since) }
