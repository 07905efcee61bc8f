//go:build linux

package looph2

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter is a driver's part in counting requests by route. Those that one call answers on the
// loop alike, one after the other, are counted together when the call ends, since their
// answers leave together then.
type counter struct {
	on      bool
	since   int64 // when the present call began, on the engine's clock
	counts  *exchange.RouteCounts
	outcome tally.Outcome
	n       uint64 // requests not yet counted
}

func (k *counter) begin(h *Handler, d *engine.Driver) {
	k.on, k.since = h.server.Counting.Load(), d.Arrived()
}

// outcome returns what the request is counted as.
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

// flushCount passes on what was counted.
func (sc *Scratch) flushCount(d *engine.Driver) {
	k := &sc.count
	if k.n == 0 {
		return
	}
	k.counts.Shard(d.Loop()).Add(k.outcome, k.n, time.Duration(d.Clock()-k.since))
	k.n = 0
}

// countInFlight counts the present request as in flight, which those that are answered at once on a
// loop never are.
func (x *Wire) countInFlight(counts *exchange.RouteCounts) {
	if x.h.server.Counting.Load() && x.inFlight == nil {
		shard := counts.Shard(0)
		shard.InFlight.Add(1)
		x.inFlight = shard
	}
}

// endInFlight ends what countInFlight began.
func (x *Wire) endInFlight() {
	if x.inFlight != nil {
		x.inFlight.InFlight.Add(-1)
		x.inFlight = nil
	}
}

// countElsewhere counts a request that was answered elsewhere.
func (x *Wire) countElsewhere(counts *exchange.RouteCounts, outcome tally.Outcome) {
	if x.h.server.Counting.Load() {
		counts.Shard(0).Add(outcome, 1, x.took())
	}
}

// took returns how long the present request has taken.
func (x *Wire) took() time.Duration { return time.Duration(x.now() - x.since) }
