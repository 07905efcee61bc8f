//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter is a driver's part in counting requests by route. Consecutive requests of one call of the handler with the same
// route and outcome are counted together when the call ends. Their answers are sent together then, so one clock reading serves
// all of them.
//
// The counted time begins when the loop learned that the connection is readable, so it includes the wait for other requests.
type counter struct {
	on       bool
	since    int64 // when the current call began, on the engine's clock
	counts   *exchange.RouteCounts
	outcome  tally.Outcome
	n        uint64 // number of requests not yet counted
	inFlight *tally.Shard
}

// countAnswer counts the current request. The function answer does this itself for a request like the previous one, which is
// common in a pipeline.
func (x *wire) countAnswer(a *exchange.Answer) { x.countOther(&x.s.Route.Counts, x.outcome(a)) }

// outcome returns the class in which the current request is counted.
func (x *wire) outcome(a *exchange.Answer) tally.Outcome {
	server := x.handler.server
	return x.s.Outcome(a, x.c.Secure() || server.Proxies != nil && x.s.Path != "" && server.Secure(x)) // without a path, the fields are unknown
}

// countOther counts a request that differs from the previous one.
func (x *wire) countOther(counts *exchange.RouteCounts, outcome tally.Outcome) {
	k := &x.count
	if !k.on {
		return
	}
	x.flushCount()
	k.counts, k.outcome, k.n = counts, outcome, 1
}

// flushCount adds the gathered counts to the statistics.
func (x *wire) flushCount() {
	k := &x.count
	if k.n == 0 {
		return
	}
	k.counts.Shard(x.d.Loop()).Add(k.outcome, k.n, time.Duration(x.d.Clock()-k.since))
	k.n = 0
}

// countInFlight counts the current request as in flight. Requests that are answered on a loop without blocking never are.
func (x *wire) countInFlight() { x.countInFlightFor(&x.s.Route.Counts) }

func (x *wire) countInFlightFor(counts *exchange.RouteCounts) {
	if x.count.on {
		x.count.inFlight = counts.Shard(0)
		x.count.inFlight.InFlight.Add(1)
	}
}

// endInFlight reverts countInFlight.
func (x *wire) endInFlight() {
	if s := x.count.inFlight; s != nil {
		s.InFlight.Add(-1)
		x.count.inFlight = nil
	}
}

// Abandoned does nothing: the engine calls handler.Abandoned, which counts.
func (x *wire) Abandoned() {}
