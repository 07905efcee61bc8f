//go:build linux

package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A loop that keeps up serves events as epoll gives them. One that does not is
// saturated: it fetches all events at once and often, and serves their connections
// from queues of its own, a few in a turn. Only so does it know how long each
// has waited, since what epoll keeps has no time.
//
//	relaxed ──(a turn took longer than longTurn)──▶ saturated
//	relaxed ◀──(the queues are empty)── saturated
//
// There are two queues, which share the time: one of connections that ask again after
// they have been answered, and one of new connections and of those in the middle of what
// they have sent at once. So neither a burst that comes nor long pipelines hold up those
// who are there and ask for little.
const (
	longTurn = int64(2 * time.Millisecond)
	// turnTime is how long a saturated loop serves before it fetches events again, and so
	// how exact it knows when they came. A turn is shorter while others wait, for whom
	// those who come meanwhile should not wait.
	turnTime      = int64(time.Millisecond)
	shortTurnTime = int64(100 * time.Microsecond)
	// manyAtOnce is how many connections a turn must serve for its length to be looked at.
	manyAtOnce = 32
)

// connQueue is a queue of connections. conns[at:] are in it.
type connQueue struct {
	conns    []*Conn
	asked    []uint16 // what each counted as: who is away meanwhile is its goroutine's
	busy     []uint32 // likewise, the mark of each before it was queued
	at       int
	requests int // about as many as they ask, see Conn.asks
	unknown  int // ... without those of so many connections
}

// A laterConn is a connection that is to be served in the next turn, and what it counts as.
type laterConn struct {
	conn *Conn
	asks uint16
	busy uint32
}

func (q *connQueue) size() int { return len(q.conns) - q.at }

// push puts c at the end, which asks as many requests and had this mark.
func (q *connQueue) push(c *Conn, asks uint16, busy uint32) {
	if len(q.conns) == cap(q.conns) && q.at > len(q.conns)/2 {
		n := copy(q.conns, q.conns[q.at:])
		clear(q.conns[n:])
		copy(q.asked, q.asked[q.at:])
		copy(q.busy, q.busy[q.at:])
		q.conns, q.asked, q.busy, q.at = q.conns[:n], q.asked[:n], q.busy[:n], 0
	}
	q.conns, q.asked, q.busy = append(q.conns, c), append(q.asked, asks), append(q.busy, busy)
	if q.requests += int(asks); asks == 0 {
		q.unknown++
	}
}

func (q *connQueue) pop() *Conn {
	c := q.conns[q.at]
	q.conns[q.at] = nil
	n := int(q.asked[q.at])
	if q.requests -= n; n == 0 {
		q.unknown--
	}
	if q.at++; q.at == len(q.conns) {
		q.conns, q.asked, q.busy, q.at, q.requests, q.unknown = q.conns[:0], q.asked[:0], q.busy[:0], 0, 0, 0
	}
	return c
}

// asks returns about how many requests c has for its next visit: those of a connection of parts are known
// only when it is served, and taken for as many as it had lately. 0 is for one that had none yet.
func (c *Conn) asks() uint16 {
	if c.Notes&Parts == 0 {
		return 1
	}
	return c.Count
}

// queueIntervals is for how many times its target a queue must stand, see
// admission.QueueControl.
const queueIntervals = 10

func (e *Engine) newQueueControl() admission.QueueControl {
	return admission.QueueControl{Target: e.cfg.QueueTarget, Interval: queueIntervals * e.cfg.QueueTarget}
}

// queueInterval returns the number of the interval of queues in which now lies.
func (e *Engine) queueInterval(now int64) uint32 {
	return uint32(now / int64(queueIntervals*max(e.cfg.QueueTarget, time.Millisecond)))
}

// openings counts the connections of a loop that have shaken hands lately, by intervals: the number of each above
// how many they were. Any goroutine may add and read.
type openings [3*admission.ShakingIntervals + 1]atomic.Uint64

func (o *openings) add(interval uint32) {
	for n := &o[interval%uint32(len(o))]; ; {
		old := n.Load()
		next := old + 1
		if uint32(old>>32) != interval {
			next = uint64(interval)<<32 | 1
		}
		if n.CompareAndSwap(old, next) {
			return
		}
	}
}

// lately returns how many they were in the latest admission.ShakingIntervals, and how many at the least in each of the
// two spans before that are as long: of a burst there are none in the earlier one.
func (o *openings) lately(interval uint32) (n, usually int) {
	var in [3]int
	for i := range o {
		had := o[i].Load()
		if age := interval - uint32(had>>32); age < 3*admission.ShakingIntervals {
			in[age/admission.ShakingIntervals] += int(uint32(had))
		} else if int32(age) < 0 {
			in[0] += int(uint32(had)) // the loop's clock is that of its turn
		}
	}
	return in[0], min(in[1], in[2])
}

// openedLately adds up lately of all loops.
func (e *Engine) openedLately() (n, usually int) {
	interval := e.queueInterval(e.now())
	for _, l := range e.loops {
		a, b := l.openings.lately(interval)
		n, usually = n+a, usually+b
	}
	return n, usually
}

// saturation is a loop's part in this. The queues themselves are loop.primary and loop.secondary.
type saturation struct {
	on       bool
	served   int   // connections of the queues served in this turn
	began    int64 // when the first of them was
	latest   int64 // ... and the latest, which was one
	second   bool  // ... of loop.secondary
	ahead    int64 // by how many ns loop.primary was served for longer than loop.secondary, lately
	finished int   // of the queues, those whose peer has finished: they make no burst
	usual    int   // requests of a connection of parts in its visit, of those that had any, lately
	most     int   // requests that have waited at once
	control  admission.QueueControl
}

// A stamp is a time in units of 2^16 ns since the engine was made, for spans of up
// to a day. 0 is no time.
const stampShift = 16

func stampAt(ns int64) uint32 { return uint32(ns>>stampShift) | 1 }

// between returns the time from one stamp to a later one.
func between(from, to uint32) time.Duration { return time.Duration(int32(to-from)) << stampShift }

// enqueue has c served in its turn.
func (l *loop) enqueue(c *Conn) {
	if c.queued {
		return
	}
	to := &l.primary
	if (c.Notes&Parts != 0 || c.idle()) && c.flags&flagPeerDone == 0 {
		from := l.joins(c)
		if c.flags&flagNew != 0 {
			to = &l.secondary
		}
		n := int(c.asks())
		if n == 0 {
			n = max(l.saturation.usual, 1)
		}
		l.saturation.control.Arrived(from, n)
	}
	if c.flags&flagPeerDone != 0 {
		l.saturation.finished++
	}
	to.push(c, c.asks(), c.mark)
	c.queued, c.mark = true, stampAt(l.ready)
}

// joins says, and notes, where what c has for the queue comes from.
func (l *loop) joins(c *Conn) admission.Origin {
	from := l.originOf(c, c.mark)
	if from == admission.Fresh && c.Notes&Parts != 0 && between(c.mark, stampAt(l.fetched)) <= l.saturation.control.Target {
		from = admission.Returning // it may have come at once, while another's many requests were served
	}
	c.flags &^= flagNew | flagFresh
	switch from {
	case admission.New, admission.Shaken:
		c.flags |= flagNew
	case admission.Fresh:
		c.flags |= flagFresh
	}
	if t := c.secure(); t != nil && t.phase != tlsOpen {
		from = admission.Hello // it asks later
	}
	return from
}

// asked notes that a connection of parts had n > 0 requests for a visit. What is clearly more than it had lately was
// asked by others than those who were answered then, and was not counted when the connection was queued.
func (l *loop) asked(c *Conn, n int) {
	p, had := &l.saturation, int(c.Count)
	if had == 0 {
		had = n
	}
	c.Count = uint16(min((had+n+1)/2, 1<<16-1))
	if !p.on {
		return
	}
	c.mark = stampAt(l.e.now()) // a visit may be long
	p.usual = max(n, (p.usual*7+n)/8)
	p.control.Arrived(admission.Fresh, max(n-had-had/4, 0))
}

// unanswered is for a connection that is open, and has not asked.
const unanswered = -1

// taking notes that c's peer has been sent n bytes of answers at the time of its mark, and may be busy with that.
func (c *Conn) taking(n int) {
	switch {
	case n == unanswered:
		c.mark = 0
	case n >= muchOutput:
		c.mark = (c.mark + stampAt(int64(admission.Taking(n)))) | 1
	}
}

// noteVisit sets c's mark after a visit.
func (d *Driver) noteVisit(c *Conn) {
	l, before := d.loop, c.mark
	c.mark = stampAt(l.now)
	if d.begun > 0 {
		l.asked(c, d.begun)
	}
	c.taking(d.sent + d.drained)
	if d.begun > 0 || d.sent > 0 && c.Notes&Parts == 0 {
		return // it was not busy any more: it asked
	}
	if ahead := between(c.mark, before); before != 0 && ahead > 0 && ahead <= admission.Taking(math.MaxInt)+4<<stampShift { // stamps are not exact
		c.mark = before
	}
}

// waiting returns how many connections wait for their turn.
func (l *loop) waiting() int { return l.primary.size() + l.secondary.size() }

// originOf says where the request comes from that has just arrived on c, whose peer
// may have been busy with its last answer until the given stamp.
func (l *loop) originOf(c *Conn, answered uint32) admission.Origin {
	switch {
	case answered == 0:
		return c.newOrigin()
	case between(answered, stampAt(l.now)) > l.saturation.control.Target:
		return admission.Fresh
	}
	return admission.Returning
}

// newOrigin is originOf for the first request of a connection.
func (c *Conn) newOrigin() admission.Origin {
	if c.secure() != nil {
		return admission.Shaken
	}
	return admission.New
}

// originServed is originOf for a request that the loop has looked at; mark is what
// the connection's was.
func (l *loop) originServed(c *Conn, mark uint32) admission.Origin {
	switch {
	case !l.saturation.on:
		return l.originOf(c, mark)
	case c.flags&flagNew != 0:
		return c.newOrigin()
	case c.flags&flagFresh != 0:
		return admission.Fresh
	}
	return admission.Returning
}

// fetchAll fetches what else is ready into the queue.
func (l *loop) fetchAll(d *Driver) bool {
	for l.n == len(l.events) {
		l.next = 0
		l.n = epollPoll(l.epfd, l.events[:])
		for l.next < l.n {
			ev := &l.events[l.next]
			l.next++
			if !l.dispatch(d, ev) {
				return false
			}
		}
	}
	return true
}

// look judges the queues, once a turn.
func (l *loop) look() {
	p := &l.saturation
	oldest := max(l.oldest(&l.primary), l.oldest(&l.secondary))
	unknown := (l.primary.unknown + l.secondary.unknown) * max(p.usual, 1)
	waiting := max(l.primary.requests+l.secondary.requests+unknown-p.finished, 0)
	p.most = max(p.most, waiting)
	p.control.Opened, p.control.OpenedUsually = l.openings.lately(l.e.queueInterval(l.now))
	l.waits.note(l.now, int64(oldest))
	if p.control.Look(l.now, oldest, waiting, max(int(l.count.Load()), p.most)) {
		l.e.warnOverload("event loop", oldest, waiting, p.control.Target)
	}
}

// oldest returns how long the first in a queue has waited. Those that a deadline or a sweep has
// served out of turn are in it no more.
func (l *loop) oldest(q *connQueue) time.Duration {
	for _, c := range q.conns[q.at:] {
		if c.slot >= 0 && c.state.Load() == atLoop {
			return between(c.mark, stampAt(l.now))
		}
	}
	return 0
}

// visitNext serves the connection whose turn it is.
func (l *loop) visitNext(d *Driver) bool {
	p := &l.saturation
	q := l.nextQueue()
	busy := q.busy[q.at]
	c := q.pop()
	q.prefetchVisits()
	c.queued = false
	if c.slot >= 0 && !c.noteEvent(0) {
		return true
	}
	if c.flags&flagPeerDone != 0 {
		p.finished--
	}
	if c.slot < 0 {
		return true
	}
	since := c.mark
	c.mark = busy
	if !p.on {
		return d.visit(c)
	}
	p.served++
	d.waited = max(between(since, stampAt(l.now)), 0)
	d.overdue = p.control.Refuse(l.now, d.waited)
	kept := d.visit(c)
	d.overdue, d.waited = false, 0
	return kept
}

// Began says that this call of Data has begun so many requests, for a connection of Parts.
func (d *Driver) Began(n int) { d.begun += n }

// nextQueue returns the queue whose turn it is, one of which must not be empty.
func (l *loop) nextQueue() *connQueue {
	p := &l.saturation
	p.second = l.primary.size() == 0 || p.ahead > 0 && l.secondary.size() > 0
	if p.second {
		return &l.secondary
	}
	return &l.primary
}

// turnOver reports whether a saturated loop has served for long enough to look for events
// again.
func (l *loop) turnOver() bool {
	p := &l.saturation
	if !p.on {
		return false
	}
	now := l.e.now()
	took := now - p.latest
	p.latest = now
	switch {
	case p.served == 0:
		p.began = now
		return false
	case p.second:
		p.ahead = max(p.ahead-took, -longTurn)
	default:
		p.ahead = min(p.ahead+took, turnTime)
	}
	if l.secondary.size() > 0 {
		return now-p.began >= shortTurnTime
	}
	return now-p.began >= turnTime
}

// carryOver ends a turn: what waits goes on waiting, beside what is for the next
// turn. It relaxes the loop when nothing does.
func (l *loop) carryOver() {
	p := &l.saturation
	p.served = 0
	to := &l.primary
	if p.on {
		to = &l.secondary
	}
	for i, next := range l.later {
		l.later[i] = laterConn{}
		to.push(next.conn, next.asks, next.busy)
	}
	l.later = l.later[:0]
	if p.on && l.waiting() == 0 {
		p.on, p.finished, p.most = false, 0, 0
		p.control.Look(l.now, 0, 0, int(l.count.Load()))
	}
}

// saturate begins to queue when the turn that began at the given time was long. What is ready has come at any time
// since then.
func (l *loop) saturate(began int64) {
	p := &l.saturation
	l.ready, l.fetched = l.now, began
	if l.polls > 1 {
		l.fetched = l.now
	}
	if l.n == 0 || l.polls > 1 || l.now-began < longTurn {
		return
	}
	l.ready -= (l.now - began) / 2
	if p.on {
		return
	}
	p.on = true
	l.primary, l.secondary = l.secondary, l.primary // what is in the middle of what it has sent
}

// noteTurn tells how many connections a loop that was not saturated had to serve in the turn that began at the given time,
// if they took long: they have waited for each other as those in a queue do.
func (l *loop) noteTurn(began int64, n int) {
	p := &l.saturation
	if p.on || n < manyAtOnce || l.e.now()-began < longTurn {
		return
	}
	p.control.Look(began, 0, n, int(l.count.Load()))
}

// Overdue reports whether the requests of this call have waited so long that they are
// to be refused, quickly: the loop, or the pool of workers, has more than it can
// do. See admission.QueueControl.
func (d *Driver) Overdue() bool { return d.overdue }

// warnOverload says, at most once a second, that requests are refused.
func (e *Engine) warnOverload(where string, oldest time.Duration, waiting int, target time.Duration) {
	now := e.now()
	last := e.warnedAt.Load()
	if last != 0 && now-last < int64(time.Second) || !e.warnedAt.CompareAndSwap(last, now) {
		return
	}
	e.cfg.Logger.Warn("engine: overloaded: requests that wait longer than the target are refused",
		"where", where, "oldest", oldest, "waiting", waiting, "target", target)
}
