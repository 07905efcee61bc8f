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
//     latest, or, if it grows slowly, in the 10 before the 10 latest, when it stood already; it
//     has not become shorter meanwhile, as it does when a burst has come and is being served; and
//     a quarter of those who joined it had not just been answered (Fresh). A burst is complete when all are in
//     the queue, and from then on each that joins was answered before. New connections count
//     as well once they have come for three intervals and 300 ms, for a burst connects at once;
//     those that had to shake hands, one after the other, once they have come for 15 intervals:
//     by as many as they are the queue may grow until then, and if they are a quarter of those connected,
//     by as many as they were in that time: clients that are still busy with the handshakes of others ask late. Of all
//     these, as many do not count as shake hands in such a time all along: they are no burst. Who begins to shake hands
//     joins the queue, but has not asked (Hello);
//   - or one client in eight closes before its turn has come, in a quarter of the
//     windows of those 20 intervals: they are hurt.
//
// States:
//
//	calm ──(the queue stood for an interval, and there is a sign)──▶ overloaded
//	calm ◀──(nobody refused for 20 intervals)── overloaded
//	calm ◀──(for two intervals, half of all connections still wait: a burst)── overloaded
//
// It belongs to whoever has the queue; its methods must not be called at once.
type QueueControl struct {
	Target   time.Duration // what a request may wait while the queue stands; ≤ 0: nothing is ever refused
	Interval time.Duration // how long the queue must stand

	// Opened is how many of those connected have shaken hands in the latest ShakingIntervals, where that is known
	// beside what is counted as Shaken, and OpenedUsually how many did in as long a time before all that can be of one
	// burst with them. They are to be set before Look.
	Opened, OpenedUsually int

	overloaded bool
	since      int64 // when the queue began to stand, 0: it does not
	refused    int64 // when a request was last refused, or overload began
	futile     int   // for how many windows refusing has not made the queue shorter
	notBefore  int64 // overload does not begin before

	// The latest manyIntervals intervals, in windows: a ring.
	window int64 // when recent[at] began
	at     int
	recent [windows * manyIntervals]counts
	joined counts // since the latest look
}

// An Origin says where a request comes from.
type Origin uint8

const (
	Returning Origin = iota // from a client that was just answered, and may have been busy with that: see Taking
	Fresh                   // from one that was not
	New                     // from a new connection
	Shaken                  // from one that has had to shake hands
	Hello                   // no request: one that begins to
)

// counts is what happened in a part of an interval.
type counts struct {
	arrived   int
	fresh     int
	new       int
	shaken    int
	hellos    int
	abandoned int // clients that closed before their turn came
	longest   int // the longest queue
	looks     int
	lengths   int // the sum of the queue's lengths at looks
}

// asked returns how many requests arrived.
func (c *counts) asked() int { return c.arrived - c.hellos }

// hurt reports whether many clients closed before their turn came.
func (c *counts) hurt() bool { return c.abandoned > c.arrived/8 }

func (c *counts) add(other *counts) {
	c.arrived += other.arrived
	c.fresh += other.fresh
	c.new += other.new
	c.shaken += other.shaken
	c.hellos += other.hellos
	c.abandoned += other.abandoned
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
	// connecting is for how many windows at most a burst connects, and connectTime for how long, in
	// case intervals are short: how quickly connections come has nothing to do with the target.
	connecting  = 3 * windows
	connectTime = 300 * time.Millisecond
	// shaking is for how many windows one does that shakes hands: a thousand clients take a processor a second
	// for that, their own a longer one, and ask as soon as they can.
	shaking = ShakingIntervals * windows
	// slowly is for how many windows a queue must have stood before its length is compared with
	// that of half as long ago: then it stood already, and the burst that it may be was complete.
	slowly = manyIntervals/2*windows + connecting
)

// Who comes again within Target of having taken its answer was not from outside. When that was the server does not
// know: a client that is busy, or far away, finds its answer long after its system has confirmed it. So it is
// believed to take takeRate bytes a second, as slow a client as asks for large answers again and again, but no more
// than mostTaken of what has been sent at once.
const (
	takeRate  = 768 << 10
	mostTaken = 1 << 20
)

// Taking returns for how long a client may be busy with an answer of n bytes, before it asks again.
func Taking(n int) time.Duration { return time.Duration(min(n, mostTaken)) * (time.Second / takeRate) }

// ShakingIntervals is for how many intervals connections that have shaken hands may all be of one burst.
const ShakingIntervals = 15

// Arrived counts n requests that join the queue, or what else it holds.
func (q *QueueControl) Arrived(o Origin, n int) {
	q.joined.arrived += n
	switch o {
	case Fresh:
		q.joined.fresh += n
	case New:
		q.joined.new += n
	case Shaken:
		q.joined.shaken += n
	case Hello:
		q.joined.hellos += n
	}
}

// Abandoned counts a client that did not wait for its turn.
func (q *QueueControl) Abandoned() { q.joined.abandoned++ }

// Look is to be called every few milliseconds while there is a queue, and when it has
// ended: oldest is how long the first has waited, waiting how many there are,
// connected how many there could be at most. now is in ns on any clock but 0.
// It reports whether overload has just begun.
func (q *QueueControl) Look(now int64, oldest time.Duration, waiting, connected int) (began bool) {
	switch {
	case oldest <= q.Target:
		q.since = 0
	case q.since == 0:
		q.since = now
	}
	if step := int64(q.Interval) / windows; now-q.window >= step {
		began = q.judge(now, waiting, connected)
		q.moveOn(now, step)
	}
	c := &q.recent[q.at]
	c.add(&q.joined)
	q.joined = counts{}
	c.longest = max(c.longest, waiting)
	c.lengths += waiting
	c.looks++
	return began
}

// moveOn makes the window in which now lies the present one.
func (q *QueueControl) moveOn(now, step int64) {
	if now-q.window > manyIntervals*int64(q.Interval) {
		q.recent = [len(q.recent)]counts{}
		q.window = now
		return
	}
	for ; q.window <= now-step; q.window += step {
		q.at = (q.at + 1) % len(q.recent)
		q.recent[q.at] = counts{}
	}
}

// judge changes the state if it is time to, and reports whether overload begins.
func (q *QueueControl) judge(now int64, waiting, connected int) bool {
	interval := int64(q.Interval)
	if q.overloaded {
		q.judgeOverload(now, connected)
		return false
	}
	if q.Target <= 0 || q.since == 0 || now-q.since < interval || now < q.notBefore || waiting < leastQueue {
		return false
	}
	stood := now - q.since
	comes := min(max(connecting, int(windows*connectTime/q.Interval)), len(q.recent))
	var latest, before, longBefore, latestTen counts
	hurt := 0                 // windows in which clients gave up
	fed, fedSlowly := 0, 0    // of the latest, those in which requests came from outside
	lately := q.joined.shaken // who shook hands lately
	// The present window may be over for long, if nobody has looked.
	step := interval / windows
	over, rest := int(min((now-q.window)/step, int64(len(q.recent))))-1, (now-q.window)%step
	within := windows // so many of them lie in the latest interval
	if rest >= int64(q.Target) {
		within--
	}
	for age := over; age < len(q.recent); age++ { // in windows
		c := &q.recent[(q.at+len(q.recent)-(age-over))%len(q.recent)]
		if c.hurt() {
			hurt++
		}
		if age < comes && c.fresh+c.new > c.asked()/4 {
			fed++
		}
		if age < shaking {
			lately += c.shaken
			if c.new+c.shaken > c.asked()/4 {
				fedSlowly++
			}
		}
		if age < within {
			latest.add(c)
		} else {
			before.add(c)
		}
		if age >= len(q.recent)/2 {
			longBefore.add(c)
		} else {
			latestTen.add(c)
		}
	}
	shakes := fedSlowly < shaking*3/4 // those who do may all be of one burst
	// By so many the queue may have grown.
	may, mayInTen := q.beyondUsual(latest.shaken, 1), q.beyondUsual(latestTen.shaken, manyIntervals/2)
	switch lately = q.beyondUsual(max(lately, q.Opened), ShakingIntervals); {
	case !shakes:
		may, mayInTen = 0, 0
	case lately >= connected/4:
		may, mayInTen = lately, lately
	}
	grows := waiting-may > before.longest+before.longest/4 ||
		stood > slowly*interval/windows && waiting-mayInTen > longBefore.longest+longBefore.longest/4
	if last := &q.recent[q.at]; last.longest-waiting > (last.arrived+q.joined.arrived)/4 {
		grows = false // it did, and fewer join now than are served
	}
	outside := latest.fresh > (latest.asked()-latest.new-latest.shaken)/4 || fed >= comes*3/4 || !shakes
	if !(grows && outside) && hurt < len(q.recent)/4 {
		return false
	}
	q.overloaded, q.refused, q.futile = true, now, 0
	return true
}

// beyondUsual returns how many of those who shook hands in so many intervals are more than always do.
func (q *QueueControl) beyondUsual(shaken, intervals int) int {
	return max(shaken-(q.OpenedUsually*intervals+ShakingIntervals-1)/ShakingIntervals, 0)
}

// judgeOverload ends the overload if it is over, or refusing does not help.
func (q *QueueControl) judgeOverload(now int64, connected int) {
	last := &q.recent[q.at]
	q.futile++
	if last.lengths <= connected/2*last.looks || last.hurt() {
		q.futile = 0
	}
	switch {
	case q.futile >= 2*windows:
		q.overloaded, q.notBefore = false, now+manyIntervals*int64(q.Interval)
	case now-q.refused >= manyIntervals*int64(q.Interval):
		q.overloaded = false
	}
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
