//go:build linux

package request

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A Counter counts a driver's requests by route. Consecutive requests of one call of the handler with the same route and outcome
// are counted together when the call ends. Their answers are sent together then, so one clock reading serves all of them.
//
// The counted time begins when the loop learned that the connection is readable, so it includes the wait for other requests.
type Counter struct {
	On      bool // requests are counted; set before the first request
	outcome tally.Outcome
	Since   int64 // when the current call began, on the engine's clock
	counts  *exchange.RouteCounts
	n       uint64 // number of requests not yet counted
}

// Add counts a request.
func (k *Counter) Add(d *engine.Driver, counts *exchange.RouteCounts, outcome tally.Outcome) {
	if counts == k.counts && outcome == k.outcome { // as in a pipeline
		k.n++
		return
	}
	k.addOther(d, counts, outcome)
}

// addOther counts a request that differs from the previous one. It is apart so that Add is inlined.
//
//go:noinline
func (k *Counter) addOther(d *engine.Driver, counts *exchange.RouteCounts, outcome tally.Outcome) {
	if k.On {
		k.Flush(d)
		k.counts, k.outcome, k.n = counts, outcome, 1
	}
}

// Flush adds the counted requests to the statistics.
func (k *Counter) Flush(d *engine.Driver) {
	if k.n == 0 {
		return
	}
	k.counts.Shard(d.Loop()).Add(k.outcome, k.n, time.Duration(d.Clock()-k.Since))
	k.n = 0
}

// An InFlight records which statistics count a request as in flight. The zero value is none.
type InFlight struct{ shard *tally.Shard }

// Begin counts a request of a route as in flight if on is set and the request is not counted yet. Requests that are answered on a
// loop without blocking are never counted as in flight.
func (f *InFlight) Begin(on bool, counts *exchange.RouteCounts) {
	if on && f.shard == nil {
		f.shard = counts.Shard(0)
		f.shard.InFlight.Add(1)
	}
}

// End reverts Begin.
func (f *InFlight) End() {
	if f.shard != nil {
		f.shard.InFlight.Add(-1)
		f.shard = nil
	}
}
