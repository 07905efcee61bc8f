// Package tally counts requests and how long they took, without locks and
// without goroutines waiting for each other's cache lines. It knows neither
// HTTP nor engines: an outcome is a number whose meaning the user gives it.
//
// # Counting requests
//
// Each route has an exchange.RouteCounts (internal/exchange/state.go): a histogram of durations for
// each outcome that its requests have had, which is their status and method and whether they came
// by TLS (exchange/outcome.go), in shards. A shard is what one event loop writes to, so that no two
// processors want the same cache line; it is made when the loop first answers a request of that
// route, and a histogram, of 1 KB, with the first request of its outcome. Net/http's exchanges, which
// are pooled by processor, are spread over the same shards. A snapshot adds the shards up.
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
	"slices"
	"sync/atomic"
	"time"
)

// An Outcome is the kind of end that a request has had. Its low three bits are its class.
type Outcome uint16

// Classes is how many classes there are.
const Classes = 8

// Class returns the class of an outcome.
func (o Outcome) Class() uint8 { return uint8(o % Classes) }

// told is how many outcomes a shard tells apart. Of those that come later only the class is told, beside Untold.
const told = 24

// Untold is the bit of outcomes that stand for all others of their class. No other has it.
const Untold Outcome = 1 << 15

// A Counter counts the requests of one kind, a route's say. Whoever counts does so
// in a shard; counters that run at the same time take different ones, one for an
// event loop, so that no two processors write to the same memory. A shard is made
// when it is first asked for, and takes about 1 KB for each outcome.
type Counter struct {
	shards []atomic.Pointer[Shard]
}

// A Shard is one part of a Counter. All its methods are safe for concurrent use.
type Shard struct {
	// InFlight is how many requests have begun and not ended. A request may end
	// in another shard than it began in: only the sum over all means something.
	InFlight atomic.Int64

	told   [told]atomic.Pointer[outcomeCount] // in the order in which they first came
	others [Classes]atomic.Pointer[outcomeCount]
}

// An outcomeCount counts the requests of one outcome.
type outcomeCount struct {
	outcome Outcome
	latency histogram
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
func (s *Shard) Add(outcome Outcome, n uint64, d time.Duration) {
	c := s.told[0].Load()
	if c == nil || c.outcome != outcome { // it is not what most requests of a route come to
		c = s.count(outcome)
	}
	c.latency.add(n, d)
}

// count returns what counts an outcome.
func (s *Shard) count(outcome Outcome) *outcomeCount {
	for i := range s.told {
		c := s.told[i].Load()
		if c == nil {
			c = made(&s.told[i], outcome)
		}
		if c.outcome == outcome {
			return c
		}
	}
	class := outcome.Class()
	return made(&s.others[class], Untold|Outcome(class))
}

// made returns what is at a place: what counts an outcome, if nothing was there.
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

// Sums is what the shards of a Counter say together.
type Sums struct {
	Classes  [Classes]uint64 // how many requests had an outcome of each
	InFlight int64
	Latency  Latencies
	Ended    []Ended // by outcome
}

// Ended are the requests that have had one outcome.
type Ended struct {
	Outcome Outcome
	Latency Latencies
}

// Sums adds the shards up. Requests that end meanwhile may be in some of the sums
// and not yet in others.
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
		sums.Latency = sums.Ended[0].Latency // as of most routes
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

// outcomes appends what has been counted so far to list, in order.
func (c *Counter) outcomes(list []Outcome) []Outcome {
	for i := range c.shards {
		s := c.shards[i].Load()
		for at := range s.counts {
			if place, known := slices.BinarySearch(list, at.outcome); !known {
				list = slices.Insert(list, place, at.outcome)
			}
		}
	}
	return list
}

// counts yields what counts an outcome of the shard, which may be nil.
func (s *Shard) counts(yield func(*outcomeCount) bool) {
	if s == nil {
		return
	}
	for i := range s.told {
		if c := s.told[i].Load(); c == nil {
			return // there are none in others
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

// addTo adds the requests of an outcome.
func (s *Shard) addTo(sum *counted, outcome Outcome) {
	for c := range s.counts {
		if c.outcome == outcome {
			sum.longest = max(sum.longest, c.latency.addTo(&sum.buckets))
		}
	}
}

// counted is what several histograms say together.
type counted struct {
	buckets [buckets]uint64
	longest time.Duration
}

func (c *counted) atRest() Latencies {
	l := Latencies{Max: c.longest}
	l.trim(&c.buckets)
	return l
}
