package overload

import "time"

// A Queue decides which requests of a queue are refused, by the rules of the package documentation. It uses controlled
// delay (K. Nichols and V. Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012) in its form for requests
// (B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015), with another condition for the start of an overload.
//
//	normal ──(the oldest request was too old for an interval, and there is a sign)──▶ overloaded
//	normal ◀──(nothing refused for 20 intervals, or refusing does not help)── overloaded
//
// The methods must not be called concurrently.
type Queue struct {
	target   time.Duration // ≤ 0: nothing is refused and nothing is counted
	interval int64

	since     int64 // since when the oldest request has been older than the target; 0: it is not
	refused   int64 // when a request was last refused, or when the overload began; 0: no overload
	futile    int   // windows during which refusing has not made the queue shorter
	notBefore int64 // the earliest begin of the next overload

	// recent is a ring of the windows of the latest manyIntervals intervals.
	recent [windows*manyIntervals + 1]counts
	at     int
	window int64  // when recent[at] began
	joined counts // since the latest Look
}

// counts is the number of events in a window.
type counts struct {
	arrived int32
	idle    int32 // of these, the requests on connections that had been idle
	first   int32 // of these, the requests on new connections
	left    int32 // requests whose clients closed the connection before their turn
	longest int32 // the longest queue
}

func (c *counts) add(other *counts) {
	c.arrived += other.arrived
	c.idle += other.idle
	c.first += other.first
	c.left += other.left
	c.longest = max(c.longest, other.longest)
}

// manyAbandoned reports whether many clients closed the connection before the turn of their request.
func (c *counts) manyAbandoned() bool { return c.left > c.arrived/8 }

// manyNewConns reports whether many requests came from new connections.
func (c *counts) manyNewConns() bool { return c.first > c.arrived/4 }

const (
	// intervalTargets is the length of an interval, in targets.
	intervalTargets = 10
	// windows is the number of windows in an interval.
	windows = 4
	// manyIntervals is the number of intervals for which the queue's length is recorded.
	manyIntervals = 20
	// minQueue is the minimum number of waiting requests in an overload.
	minQueue = 64
	// idleTargets is the time without an answer after which a connection is idle, in targets.
	idleTargets = 5 * intervalTargets
)

// NewQueue returns a Queue that refuses requests which have waited for longer than target in an overload. With a negative
// target it refuses nothing.
func NewQueue(target time.Duration) Queue {
	return Queue{target: target, interval: intervalTargets * int64(target)}
}

// Target returns for how long requests may wait in an overload.
func (q *Queue) Target() time.Duration { return q.target }

// An Origin tells where a request comes from.
type Origin uint8

const (
	Returning Origin = iota // a connection that was answered lately
	Idle                    // a connection that was not answered lately
	First                   // a new connection
)

// OriginOf returns the origin of a request that arrives after its connection was idle for the given time.
func (q *Queue) OriginOf(idle time.Duration) Origin {
	if idle > idleTargets*q.target {
		return Idle
	}
	return Returning
}

// Arrived counts n requests that join the queue.
func (q *Queue) Arrived(from Origin, n int) {
	if q.target <= 0 {
		return
	}
	q.joined.arrived += int32(n)
	switch from {
	case Idle:
		q.joined.idle += int32(n)
	case First:
		q.joined.first += int32(n)
	}
}

// Abandoned counts a request whose client closed the connection before its turn.
func (q *Queue) Abandoned() { q.joined.left++ }

// Look must be called every few milliseconds while there is a queue, and when it has ended. oldest is the time for which
// the first request has waited, waiting is the number of waiting requests, and connected is the number of connections, or
// the maximum that waiting can reach. now is in ns on any clock, and not 0. Look reports whether an overload has just
// begun.
func (q *Queue) Look(now int64, oldest time.Duration, waiting, connected int) (began bool) {
	if q.target <= 0 {
		return false
	}
	switch {
	case oldest <= q.target:
		q.since = 0
	case q.since == 0:
		q.since = now
	}
	next := q.advance(now)
	c := &q.recent[q.at]
	c.add(&q.joined)
	q.joined = counts{}
	c.longest = max(c.longest, int32(waiting))
	switch {
	case !next:
	case q.Overloaded():
		q.judgeOverload(now, waiting, connected)
	case q.since != 0 && now-q.since >= q.interval && now >= q.notBefore && waiting >= minQueue:
		if began = q.hasSign(now-q.since, int32(waiting)); began {
			q.refused, q.futile = now, 0
		}
	}
	return began
}

// advance makes the window of now the present window. It reports whether it was another window before.
func (q *Queue) advance(now int64) bool {
	step := q.interval / windows
	switch n := (now - q.window) / step; {
	case n <= 0:
		return false
	case n >= int64(len(q.recent)):
		q.recent = [len(q.recent)]counts{}
		q.window = now
	default:
		for range n {
			q.at = (q.at + 1) % len(q.recent)
			q.recent[q.at] = counts{}
		}
		q.window += n * step
	}
	return true
}

// sum adds up the windows of the given ages. The age of the present window is 0.
func (q *Queue) sum(from, to int) (all counts) {
	for age := from; age < to; age++ {
		all.add(&q.recent[(q.at+len(q.recent)-age)%len(q.recent)])
	}
	return all
}

// hasSign reports whether more requests arrive than the present clients explain (rule 2). late is the time for which the
// oldest request has been older than the target, in ns.
func (q *Queue) hasSign(late int64, waiting int32) bool {
	const latest, half, all = windows, windows*manyIntervals/2 + 1, windows*manyIntervals + 1
	if q.inWindows((*counts).manyAbandoned) >= windows*manyIntervals/4 {
		return true
	}
	if last := q.sum(0, 2); last.longest-waiting > last.arrived/4 {
		return false // the queue has just become shorter
	}
	manyNew := q.inWindows((*counts).manyNewConns) >= windows*manyIntervals*3/4
	grown := func(now, before counts) bool {
		outside := now.idle
		if manyNew {
			outside += now.first
		}
		return waiting-before.longest > before.longest/4 && outside > now.arrived/8
	}
	return grown(q.sum(0, latest), q.sum(latest, all)) ||
		late > (manyIntervals/2+1)*q.interval && grown(q.sum(0, half), q.sum(half, all))
}

// inWindows returns the number of windows that meet a condition.
func (q *Queue) inWindows(so func(*counts) bool) (n int) {
	for i := range q.recent {
		if so(&q.recent[i]) {
			n++
		}
	}
	return n
}

// judgeOverload ends the overload by rule 4.
func (q *Queue) judgeOverload(now int64, waiting, connected int) {
	q.futile++
	if last := q.sum(0, 2); waiting <= connected/2 || last.manyAbandoned() {
		q.futile = 0
	}
	switch {
	case q.futile >= 2*windows:
		q.refused, q.notBefore = 0, now+manyIntervals*q.interval
	case now-q.refused >= manyIntervals*q.interval:
		q.refused = 0
	}
}

// Overloaded reports whether requests are being refused.
func (q *Queue) Overloaded() bool { return q.refused != 0 }

// Refuse reports whether a request that has waited for the given time is refused.
func (q *Queue) Refuse(now int64, waited time.Duration) bool {
	if !q.Overloaded() || waited <= q.target {
		return false
	}
	q.refused = now
	return true
}
