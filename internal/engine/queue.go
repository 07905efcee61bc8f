//go:build linux

package engine

import (
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
)

// connQueue is a queue of connections. conns[at:] are in it.
type connQueue struct {
	conns []*Conn
	at    int
}

func (q *connQueue) size() int { return len(q.conns) - q.at }

// first returns the head of the queue, which must not be empty.
func (q *connQueue) first() *Conn { return q.conns[q.at] }

func (q *connQueue) push(c *Conn) {
	if len(q.conns) == cap(q.conns) && q.at > len(q.conns)/2 {
		n := copy(q.conns, q.conns[q.at:])
		clear(q.conns[n:])
		q.conns, q.at = q.conns[:n], 0
	}
	q.conns = append(q.conns, c)
}

func (q *connQueue) pop() *Conn {
	c := q.conns[q.at]
	q.conns[q.at] = nil
	if q.at++; q.at == len(q.conns) {
		q.conns, q.at = q.conns[:0], 0
	}
	return c
}

// queueIntervals is for how many times its target a queue must stand, see
// admission.QueueControl.
const queueIntervals = 10

func (e *Engine) newQueueControl() admission.QueueControl {
	return admission.QueueControl{Target: e.cfg.QueueTarget, Interval: queueIntervals * e.cfg.QueueTarget}
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
	if c.idle() && c.flags&flagPeerDone == 0 {
		from := l.originOf(c, c.mark)
		c.flags &^= flagNew | flagFresh
		switch from {
		case admission.New, admission.Shaken:
			c.flags |= flagNew
			to = &l.secondary
		case admission.Fresh:
			c.flags |= flagFresh
		}
		l.saturation.control.Arrived(from)
	}
	if c.flags&flagPeerDone != 0 {
		l.saturation.finished++
	}
	c.queued, c.mark = true, stampAt(l.now)
	to.push(c)
}

// waiting returns how many connections wait for their turn.
func (l *loop) waiting() int { return l.primary.size() + l.secondary.size() }

// originOf says where the request comes from that has just arrived on c, which was
// answered last at the given stamp.
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
	waiting := max(l.waiting()-p.finished, 0)
	l.waits.note(l.now, int64(oldest))
	if p.control.Look(l.now, oldest, waiting, int(l.count.Load())) {
		l.e.warnOverload("event loop", oldest, waiting, p.control.Target)
	}
}

// oldest returns how long the first in a queue has waited.
func (l *loop) oldest(q *connQueue) time.Duration {
	if q.size() == 0 {
		return 0
	}
	c := q.first()
	if c.state.Load() != atLoop {
		return 0 // a deadline or a sweep has served it out of turn
	}
	return between(c.mark, stampAt(l.now))
}

// visitNext serves the connection whose turn it is.
func (l *loop) visitNext(d *Driver) bool {
	p := &l.saturation
	c := l.nextQueue().pop()
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
	if !p.on {
		return d.visit(c)
	}
	p.served++
	d.waited = between(c.mark, stampAt(l.now))
	d.overdue = p.control.Refuse(l.now, d.waited)
	kept := d.visit(c)
	d.overdue, d.waited = false, 0
	return kept
}

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
	for i, c := range l.later {
		l.later[i] = nil
		to.push(c)
	}
	l.later = l.later[:0]
	if p.on && l.waiting() == 0 {
		p.on, p.finished = false, 0
		p.control.Look(l.now, 0, 0, int(l.count.Load()))
	}
}

// saturate begins to queue when the turn that began at the given time was long.
func (l *loop) saturate(began int64) {
	p := &l.saturation
	if p.on || l.n == 0 || l.polls > 1 || l.now-began < longTurn {
		return
	}
	p.on = true
	l.primary, l.secondary = l.secondary, l.primary // what is in the middle of what it has sent
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
