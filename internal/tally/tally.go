// Package tally counts requests and their durations without locks and without shared cache lines. It does not depend on HTTP or
// engines: an outcome is a number whose meaning the caller defines.
//
// # Counting requests
//
// Each route has an exchange.RouteCounts (internal/exchange/state.go). It has a histogram of durations for each
// outcome, a combination of status, method and use of TLS (exchange/outcome.go), in shards. Each event loop writes to
// a shard of its own, so that processors do not share cache lines. The shard is created when the loop first answers a
// request of the route, and each histogram, of 1 KB, with the first request of its outcome. Exchanges of net/http,
// pooled by processor, are spread over the same shards. A snapshot sums the shards.
//
//   - The loop engine (internal/loophttp/count.go) writes nothing shared while a call of Data answers
//     the input of a connection. Requests of the same route and outcome are counted together at the
//     end of the call, with one reading of the clock, since their answers leave with one write. A
//     duration begins with the turn that read the request, when the engine has read the clock anyway,
//     or when a saturated loop queued the connection.
//   - On the loop engine a request is in flight if its driver has lost its loop or never had one.
//     Requests that are answered at once are not counted.
//   - On net/http the duration is that of the action. A request is in flight until its answer is
//     written. A bare ServeHTTP is counted only with Config.RouteStats, and costs two branches
//     otherwise.
//
// The waiting time of requests is recorded per loop turn (internal/engine/waits.go): if more work is ready at the end
// of a turn, the length of the turn is the time that some requests have waited.
//
// A histogram (internal/tally/histogram.go) has four buckets per doubling, from 256 ns to a minute, so values read
// from it are off by a quarter at most. Counts only grow. The difference of two snapshots covers the time between them
// (Latency.Since).
package tally

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// An Outcome identifies how a request ended. Its low three bits are its class.
type Outcome uint16

// Classes is the number of classes.
const Classes = 8

// Class returns the class of an outcome.
func (o Outcome) Class() uint8 { return uint8(o % Classes) }

// maxOutcomes is the maximum number of outcomes in a shard that are counted separately. Other outcomes are counted by class, with
// the bit Untold.
const maxOutcomes = 24

// Untold is the bit of an outcome that stands for all outcomes of its class which are not counted separately. No other outcome
// has this bit.
const Untold Outcome = 1 << 15

// A Counter counts the requests of one kind, such as a route. It has a shard per event loop, so that processors do not
// write to the same memory. A shard is created on first use and takes about 1 KB per outcome.
type Counter struct {
	shards []atomic.Pointer[Shard]
}

// A Shard is a part of a Counter. It is safe for concurrent use.
type Shard struct {
	// InFlight is the number of requests that have begun and not ended. A request may begin in one shard and end in
	// another, so only the sum of all shards is meaningful.
	InFlight atomic.Int64

	counted [maxOutcomes]atomic.Pointer[outcomeCount] // in the order of their first requests
	others  [Classes]atomic.Pointer[outcomeCount]
}

// An outcomeCount counts the requests of one outcome.
type outcomeCount struct {
	outcome Outcome
	latency histogram
}

// Init allocates a shard pointer for each processor.
func (c *Counter) Init() { c.shards = make([]atomic.Pointer[Shard], runtime.GOMAXPROCS(0)) }

// Shard returns the shard for n, which must not be negative. Larger numbers share the shards.
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

// Add counts n requests with the same outcome and a duration of d each.
func (s *Shard) Add(outcome Outcome, n uint64, d time.Duration) {
	c := s.counted[0].Load()
	if c == nil || c.outcome != outcome { // not the first outcome of the route, which is usually the most frequent one
		c = s.count(outcome)
	}
	c.latency.add(n, d)
}

// count returns the counter of an outcome.
func (s *Shard) count(outcome Outcome) *outcomeCount {
	for i := range s.counted {
		c := s.counted[i].Load()
		if c == nil {
			c = made(&s.counted[i], outcome)
		}
		if c.outcome == outcome {
			return c
		}
	}
	class := outcome.Class()
	return made(&s.others[class], Untold|Outcome(class))
}

// made returns the outcomeCount at a pointer, and creates it if there is none.
func made(at *atomic.Pointer[outcomeCount], outcome Outcome) *outcomeCount {
	if c := at.Load(); c != nil {
		return c
	}
	c := &outcomeCount{outcome: outcome}
	if !at.CompareAndSwap(nil, c) {
		c = at.Load()
	}
	return c
}

// Sums is the sum of the shards of a Counter.
type Sums struct {
	Classes  [Classes]uint64 // number of requests per class
	InFlight int64
	Latency  Latencies
	Ended    []Ended // per outcome
}

// Ended are the requests with one outcome.
type Ended struct {
	Outcome Outcome
	Latency Latencies
}

// Sums adds up the shards. A request that ends at the same time may be included in some of the sums only.
func (c *Counter) Sums() (sums Sums) {
	var few [8]Outcome
	for _, o := range c.outcomes(few[:0]) {
		var own counted
		for i := range c.shards {
			c.shards[i].Load().addTo(&own, o)
		}
		l := own.atRest()
		sums.Ended = append(sums.Ended, Ended{o, l})
		sums.Classes[o.Class()] += l.total
	}
	for i := range c.shards {
		if s := c.shards[i].Load(); s != nil {
			sums.InFlight += s.InFlight.Load()
		}
	}
	if len(sums.Ended) == 1 {
		sums.Latency = sums.Ended[0].Latency // the usual case: one outcome
		return sums
	}
	var all counted
	for _, e := range sums.Ended {
		all.longest = max(all.longest, e.Latency.Max)
		for i, n := range e.Latency.counts {
			all.buckets[e.Latency.first+i] += n
		}
	}
	sums.Latency = all.atRest()
	return sums
}

// outcomes appends the counted outcomes to list, sorted.
func (c *Counter) outcomes(list []Outcome) []Outcome {
	for i := range c.shards {
		s := c.shards[i].Load()
		for at := range s.counts {
			if index, known := slices.BinarySearch(list, at.outcome); !known {
				list = slices.Insert(list, index, at.outcome)
			}
		}
	}
	return list
}

// counts yields the counters of the shard, which may be nil.
func (s *Shard) counts(yield func(*outcomeCount) bool) {
	if s == nil {
		return
	}
	for i := range s.counted {
		if c := s.counted[i].Load(); c == nil {
			return // the array is filled in order
		} else if !yield(c) {
			return
		}
	}
	for i := range s.others {
		if c := s.others[i].Load(); c != nil && !yield(c) {
			return
		}
	}
}

// addTo adds the requests of an outcome to sum.
func (s *Shard) addTo(sum *counted, outcome Outcome) {
	for c := range s.counts {
		if c.outcome == outcome {
			sum.longest = max(sum.longest, c.latency.addTo(&sum.buckets))
		}
	}
}

// counted is the sum of several histograms.
type counted struct {
	buckets [buckets]uint64
	longest time.Duration
}

func (c *counted) atRest() Latencies {
	l := Latencies{Max: c.longest}
	l.trim(&c.buckets)
	return l
}
