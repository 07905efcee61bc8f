package admission

import "time"

// A QueueControl says when a queue of requests stands and whom to refuse then. It
// is controlled delay (K. Nichols and V. Jacobson, "Controlling Queue Delay", ACM
// Queue 10(5), 2012) as it is used for requests (B. Maurer, "Fail at Scale", ACM
// Queue 13(8), 2015): a queue in which everybody waits longer than a short target
// for a whole interval absorbs no burst, it only adds delay. Then whoever has
// waited longer than the target is refused.
//
// That alone would refuse clients that are merely many. A thousand of them, each
// of which asks again as soon as it is answered, make a queue of a thousand that
// stands for ever, hurts none of them, and does not get shorter when some are
// refused: they come back at once. So at least 64 must wait, and there must be a
// sign that the queue has no end:
//
//   - it grows: it is longer by a quarter than at any time in the 20 intervals before the
//     latest, or, if it grows slowly, in the 10 before the 10 latest; and a quarter of those
//     who joined it had not just been answered (Fresh). A burst is complete when all are in
//     the queue, and from then on each that joins was answered before. New connections count
//     as well once they have come for three intervals, for a burst connects at once;
//   - or one client in eight closes before its turn has come, in a quarter of the
//     windows of those 20 intervals: they are hurt.
//
// States:
//
//	calm ──(the queue stood for an interval, and a sign)──▶ overloaded
//	calm ◀──(nobody refused for 20 intervals)── overloaded
//	calm ◀──(for two intervals, half of all connections still wait: a burst)── overloaded
//
// It belongs to whoever has the queue; its methods must not be called at once.
type QueueControl struct {
	Target   time.Duration // what a request may wait while the queue stands; ≤ 0: nothing is ever refused
	Interval time.Duration // how long the queue must stand

	overloaded bool
	since      int64 // when the queue began to stand, 0: it does not
	refused    int64 // when a request was last refused, or overload began
	futile     int   // for how many windows refusing has not made the queue shorter
	notBefore  int64 // overload does not begin before

	// The latest manyIntervals intervals, in windows: a ring.
	window int64 // when recent[at] began
	at     int
	recent [windows * manyIntervals]counts
}

// An Origin says where a request comes from.
type Origin uint8

const (
	Returning Origin = iota // from a client that was just answered
	Fresh                   // from one that was not
	New                     // from a new connection
)

// counts is what happened in a part of an interval.
type counts struct {
	arrived   int
	fresh     int
	new       int
	abandoned int // clients that closed before their turn came
	longest   int // the longest queue
	looks     int
	lengths   int // the sum of the queue's lengths at looks
}

// hurt reports whether many clients closed before their turn came.
func (c *counts) hurt() bool { return c.abandoned > c.arrived/8 }

func (c *counts) add(other *counts) {
	c.arrived += other.arrived
	c.fresh += other.fresh
	c.longest = max(c.longest, other.longest)
}

const (
	// windows is how often in an interval the queue is judged.
	windows = 4
	// manyIntervals is for how long a queue's length is remembered, in intervals, and
	// how long overload is believed to go on without a sign.
	manyIntervals = 20
	// leastQueue is how many must wait: a few clients are never an overload, for they
	// wait for each other and not for long.
	leastQueue = 64
	// connecting is for how many windows at most a burst connects.
	connecting = 3 * windows
)

// Arrived counts a request that joins the queue.
func (q *QueueControl) Arrived(o Origin) {
	c := &q.recent[q.at]
	c.arrived++
	switch o {
	case Fresh:
		c.fresh++
	case New:
		c.new++
	}
}

// Abandoned counts a client that did not wait for its turn.
func (q *QueueControl) Abandoned() { q.recent[q.at].abandoned++ }

// Look is to be called every few milliseconds while there is a queue, and when it has
// ended: oldest is how long the first has waited, waiting how many there are,
// connected how many there could be at most. now is in ns on any clock but 0.
// It reports whether overload has just begun.
func (q *QueueControl) Look(now int64, oldest time.Duration, waiting, connected int) bool {
	c := &q.recent[q.at]
	c.longest = max(c.longest, waiting)
	c.lengths += waiting
	c.looks++
	switch {
	case oldest <= q.Target:
		q.since = 0
	case q.since == 0:
		q.since = now
	}
	step := int64(q.Interval) / windows
	if now-q.window < step {
		return false
	}
	began := q.judge(now, waiting, connected)
	for ; q.window <= now-step; q.window += step {
		if now-q.window > manyIntervals*int64(q.Interval) {
			latest := q.recent[q.at]
			latest.longest, latest.lengths, latest.looks = 0, 0, 0
			q.recent = [len(q.recent)]counts{}
			q.recent[q.at], q.window = latest, now // what has arrived has done so since
			break
		}
		q.at = (q.at + 1) % len(q.recent)
		q.recent[q.at] = counts{}
	}
	return began
}

// judge changes the state if it is time to, and reports whether overload begins.
func (q *QueueControl) judge(now int64, waiting, connected int) bool {
	interval := int64(q.Interval)
	if q.overloaded {
		last := &q.recent[q.at]
		q.futile++
		if last.lengths <= connected/2*last.looks || last.hurt() {
			q.futile = 0
		}
		switch {
		case q.futile >= 2*windows:
			q.overloaded, q.notBefore = false, now+manyIntervals*interval
		case now-q.refused >= manyIntervals*interval:
			q.overloaded = false
		}
		return false
	}
	if q.Target <= 0 || q.since == 0 || now-q.since < interval || now < q.notBefore || waiting < leastQueue {
		return false
	}
	stood := now - q.since
	var latest, before, longBefore counts
	hurt := 0 // windows in which clients gave up
	fed := 0  // of the latest, those in which requests came from outside
	for i := range q.recent {
		c := &q.recent[(q.at+len(q.recent)-i)%len(q.recent)]
		if c.hurt() {
			hurt++
		}
		if i < connecting && c.fresh+c.new > c.arrived/4 {
			fed++
		}
		if i < windows {
			latest.add(c)
		} else {
			before.add(c)
		}
		if i >= len(q.recent)/2 {
			longBefore.add(c)
		}
	}
	grows := waiting > before.longest+before.longest/4 ||
		stood > manyIntervals/2*interval && waiting > longBefore.longest+longBefore.longest/4
	outside := latest.fresh > latest.arrived/4 || fed >= connecting*3/4
	if !(grows && outside) && hurt < len(q.recent)/4 {
		return false
	}
	q.overloaded, q.refused, q.futile = true, now, 0
	return true
}

// Overloaded reports whether requests are being refused.
func (q *QueueControl) Overloaded() bool { return q.overloaded }

// Refuse reports whether a request that has waited for so long is to be refused.
func (q *QueueControl) Refuse(now int64, waited time.Duration) bool {
	if !q.overloaded || waited <= q.Target {
		return false
	}
	q.refused = now
	return true
}
