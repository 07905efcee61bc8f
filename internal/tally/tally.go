// Package tally counts requests and how long they took, without locks and
// without goroutines waiting for each other's cache lines. It knows neither
// HTTP nor engines: an outcome is a small number whose meaning the user gives it.
//
// # Counting requests
//
// Each route has an exchange.RouteCounts (internal/exchange/state.go): a count for each class of
// status and a histogram of durations, in shards. A shard is 1 KB that one event loop writes to,
// so that no two processors want the same cache line; it is made when the loop first answers a
// request of that route. Net/http's exchanges, which are pooled by processor, are spread over
// the same shards. A snapshot adds the shards up.
//
//   - On the loop engine (internal/loophttp/count.go) nothing is shared while a call of Data
//     answers what a connection has sent. Answers to the same route with the same outcome are
//     counted together at the end of the call, with one look at the clock, since they leave with
//     one write. The time counted begins with the turn in which the request was read, since the
//     engine has looked at the clock then anyway, or when a saturated loop has queued the
//     connection.
//   - In flight are, on the loop engine, those requests whose driver has lost its loop or never
//     had one: the engine says so by Handler.Away. Requests that are answered at once pay
//     nothing for it.
//   - On net/http the time counted is the action's; in flight is a request until its answer is
//     written. A bare ServeHTTP is not counted unless Config.RouteStats says so, and pays two
//     branches.
//
// How long requests wait before anything is done for them is noted by turn
// (internal/engine/waits.go): when there is more to do at once after a turn, then its length is
// how long some have waited.
//
// A histogram (internal/tally/histogram.go) has four buckets to each doubling, from 256 ns to a
// minute: what is read from it is off by a quarter at most. It only ever grows. What happened in
// between is the difference of two snapshots (Latency.Since).
package tally

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Outcomes is how many kinds of end a request may have.
const Outcomes = 6

// A Counter counts the requests of one kind, a route's say. Whoever counts does so
// in a shard; counters that run at the same time take different ones, one for an
// event loop, so that no two processors write to the same memory. A shard takes
// about 1 KB and is made when it is first asked for.
type Counter struct {
	shards []atomic.Pointer[Shard]
}

// A Shard is one part of a Counter. All its methods are safe for concurrent use.
type Shard struct {
	// InFlight is how many requests have begun and not ended. A request may end
	// in another shard than it began in: only the sum over all means something.
	InFlight atomic.Int64

	outcomes [Outcomes]atomic.Uint64
	latency  histogram
}

// Init makes room for as many shards as there are processors.
func (c *Counter) Init() { c.shards = make([]atomic.Pointer[Shard], runtime.GOMAXPROCS(0)) }

// Shard returns the n-th shard. Any n from 0 on has one.
func (c *Counter) Shard(n int) *Shard {
	if n >= len(c.shards) {
		n %= len(c.shards)
	}
	slot := &c.shards[n]
	if s := slot.Load(); s != nil {
		return s
	}
	s := new(Shard)
	if !slot.CompareAndSwap(nil, s) {
		s = slot.Load()
	}
	return s
}

// Add counts n requests with the same outcome that took d each.
func (s *Shard) Add(outcome uint8, n uint64, d time.Duration) {
	s.outcomes[outcome].Add(n)
	s.latency.add(n, d)
}

// Sums is what the shards of a Counter say together.
type Sums struct {
	Outcomes [Outcomes]uint64
	InFlight int64
	Latency  Latencies
}

// Sums adds the shards up. Requests that end meanwhile may be in some of the sums
// and not yet in others.
func (c *Counter) Sums() (sums Sums) {
	var buckets [buckets]uint64
	for i := range c.shards {
		s := c.shards[i].Load()
		if s == nil {
			continue
		}
		for o := range s.outcomes {
			sums.Outcomes[o] += s.outcomes[o].Load()
		}
		sums.InFlight += s.InFlight.Load()
		sums.Latency.Max = max(sums.Latency.Max, s.latency.addTo(&buckets))
	}
	sums.Latency.trim(&buckets)
	return sums
}
