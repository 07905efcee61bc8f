//go:build linux

package engine

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// A loop that keeps up serves events as epoll gives them. A loop that does not is
// saturated: it fetches all events at once and often, and serves their connections
// from a queue of its own, a few in a turn. Only so does it know how long each
// has waited, since epoll keeps no times.
//
//	relaxed ──(a turn took longer than longTurn)──▶ saturated
//	relaxed ◀──(the queue is empty)── saturated
const (
	longTurn = int64(2 * time.Millisecond)
	// turnTime is how long a saturated loop serves before it fetches events again, and so
	// how exactly it knows when they came.
	turnTime = int64(time.Millisecond)
	// pieceTime is how long it goes on with a connection that has sent many requests at once.
	pieceTime = int64(100 * time.Microsecond)
	// manyAtOnce is how many connections a turn must serve for its length to be looked at.
	manyAtOnce = 32
)

// connQueue is a queue of connections. conns[at:] are in it.
type connQueue struct {
	conns    []*Conn
	since    []uint32 // the stamp of the time since when each waits
	asked    []uint16 // what each counted as: its present count belongs to whoever serves it
	at       int
	requests int // about as many as they ask, see Conn.asks
}

// A laterConn is a connection that is to be served in the next turn.
type laterConn struct {
	conn  *Conn
	asks  uint16
	since uint32
}

func (q *connQueue) size() int { return len(q.conns) - q.at }

// push appends c, which asks for so many requests and waits since the given stamp.
func (q *connQueue) push(c *Conn, asks uint16, since uint32) {
	if len(q.conns) == cap(q.conns) && q.at > len(q.conns)/2 {
		n := copy(q.conns, q.conns[q.at:])
		clear(q.conns[n:])
		copy(q.since, q.since[q.at:])
		copy(q.asked, q.asked[q.at:])
		q.conns, q.since, q.asked, q.at = q.conns[:n], q.since[:n], q.asked[:n], 0
	}
	q.conns, q.since, q.asked = append(q.conns, c), append(q.since, since), append(q.asked, asks)
	q.requests += int(asks)
}

func (q *connQueue) pop() *Conn {
	c := q.conns[q.at]
	q.conns[q.at] = nil
	q.requests -= int(q.asked[q.at])
	if q.at++; q.at == len(q.conns) {
		q.conns, q.since, q.asked, q.at, q.requests = q.conns[:0], q.since[:0], q.asked[:0], 0, 0
	}
	return c
}

// asks returns about how many requests c has for its next visit. Those of a connection of parts are known only when it
// is served, and taken to be as many as it had lately.
func (c *Conn) asks() uint16 {
	if c.Notes&Parts == 0 {
		return 1
	}
	return max(c.Count, 1)
}

// saturation is a loop's part in this. The queue itself is loop.queue.
type saturation struct {
	on      bool
	served  int   // connections of the queue served in this turn
	began   int64 // when the first of them was
	most    int   // requests that have waited at once
	control overload.Queue
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
	if (c.Notes&Parts != 0 || c.idle()) && c.flags&flagPeerDone == 0 {
		if t := c.secure(); t == nil || t.phase == tlsOpen { // else it asks later
			l.saturation.control.Arrived(l.originOf(c.mark, l.fetched), int(c.asks()))
		}
	}
	l.queue.push(c, c.asks(), stampAt(l.ready))
	c.queued = true
}

// asked notes that a connection of parts had n > 0 requests for a visit. Clearly more than it had lately come from outside: they
// were not counted when the connection was queued.
func (l *loop) asked(c *Conn, n int) {
	had := int(c.Count)
	if had == 0 {
		had = n
	}
	c.Count = uint16(min((had+n+1)/2, 1<<16-1))
	if more := n - had - had/4; more > 0 && l.saturation.on {
		l.saturation.control.Arrived(overload.Idle, more)
	}
}

// served notes that c has been served at the given time. It is new until it has asked for something.
func (c *Conn) served(now int64) {
	c.mark = 0
	if c.Notes&Begun != 0 {
		c.mark = stampAt(now)
	}
}

// waiting returns how many connections wait for their turn.
func (l *loop) waiting() int { return l.queue.size() }

// originOf returns the origin of a request that has come at the given time on a connection with this mark.
func (l *loop) originOf(mark uint32, at int64) overload.Origin {
	if mark == 0 {
		return overload.First
	}
	return l.saturation.control.OriginOf(between(mark, stampAt(at)))
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

// look judges the queue, once a turn.
func (l *loop) look() {
	p := &l.saturation
	oldest, waiting := l.oldest(), l.queue.requests
	p.most = max(p.most, waiting)
	l.waits.note(l.now, int64(oldest))
	if p.control.Look(l.now, oldest, waiting, max(int(l.count.Load()), p.most)) {
		l.e.warnOverload("event loop", oldest, waiting, p.control.Target())
	}
}

// oldest returns how long the first in the queue has waited. A deadline or a sweep may have served it out of turn: then it is
// not in the queue any more.
func (l *loop) oldest() time.Duration {
	q := &l.queue
	for i := q.at; i < len(q.conns); i++ {
		if c := q.conns[i]; c.slot >= 0 && c.state.Load() == atLoop {
			return between(q.since[i], stampAt(l.now))
		}
	}
	return 0
}

// visitNext serves the connection whose turn it is.
func (l *loop) visitNext(d *Driver) bool {
	p := &l.saturation
	q := &l.queue
	since := q.since[q.at]
	c := q.pop()
	c.queued = false
	if c.slot < 0 || !c.noteEvent(0) {
		return true
	}
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

// turnOver reports whether a saturated loop has served for long enough to look for events
// again.
func (l *loop) turnOver() bool {
	p := &l.saturation
	if !p.on {
		return false
	}
	now := l.e.now()
	if p.served == 0 {
		p.began = now
		return false
	}
	return now-p.began >= turnTime
}

// carryOver ends a turn: what waits goes on waiting, beside what is for the next
// turn. It relaxes the loop when nothing does.
func (l *loop) carryOver() {
	p := &l.saturation
	p.served = 0
	for i, next := range l.later {
		l.later[i] = laterConn{}
		l.queue.push(next.conn, next.asks, next.since)
	}
	l.later = l.later[:0]
	if p.on && l.waiting() == 0 {
		p.on, p.most = false, 0
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
	p.on = true
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
// do. See overload.Queue.
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
