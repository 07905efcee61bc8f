//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter is a driver's part in counting requests by route. Those that one call
// of the handler answers alike, one after the other, are counted together when
// the call ends, since their answers leave together then: one look at the clock
// serves them all.
//
// The time counted begins when the loop learned that there is something to read, so it
// includes what the request waited for others.
type counter struct {
	on       bool
	since    int64 // when the present call began, on the engine's clock
	counts   *exchange.RouteCounts
	outcome  tally.Outcome
	n        uint64 // requests not yet counted
	inFlight *tally.Shard
}

// countAnswer counts the present request. answer looks itself
// whether it is like the one before, as pipelined ones are.
func (x *wire) countAnswer(a *exchange.Answer) { x.countOther(&x.s.Route.Counts, x.outcome(a)) }

// outcome returns what the present request is counted as.
func (x *wire) outcome(a *exchange.Answer) tally.Outcome {
	server := x.handler.server
	return x.s.Outcome(a, x.c.Secure() || server.Proxies != nil && x.s.Path != "" && server.Secure(x)) // without a path its fields are not known
}

// countOther counts a request that need not be like the one before.
func (x *wire) countOther(counts *exchange.RouteCounts, outcome tally.Outcome) {
	k := &x.count
	if !k.on {
		return
	}
	x.flushCount()
	k.counts, k.outcome, k.n = counts, outcome, 1
}

// flushCount passes on what was counted.
func (x *wire) flushCount() {
	k := &x.count
	if k.n == 0 {
		return
	}
	k.counts.Shard(x.d.Loop()).Add(k.outcome, k.n, time.Duration(x.d.Clock()-k.since))
	k.n = 0
}

// countInFlight counts the present request as in flight, which those that are answered
// at once on a loop never are.
func (x *wire) countInFlight() { x.countInFlightFor(&x.s.Route.Counts) }

func (x *wire) countInFlightFor(counts *exchange.RouteCounts) {
	if x.count.on {
		x.count.inFlight = counts.Shard(0)
		x.count.inFlight.InFlight.Add(1)
	}
}

// endInFlight ends what countInFlight began.
func (x *wire) endInFlight() {
	if s := x.count.inFlight; s != nil {
		s.InFlight.Add(-1)
		x.count.inFlight = nil
	}
}

// Abandoned leaves the counting to the engine's call of Abandoned.
func (x *wire) Abandoned() {}
