//go:build linux

package engine

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// A loop that keeps up serves events in the order of epoll. A loop that does not keep up is saturated: it often fetches all
// events at once, and serves their connections from a queue of its own, a few in each turn. The queue records how long each
// connection has waited; epoll has no times.
//
//	relaxed ──(a turn took longer than longTurn)──▶ saturated
//	relaxed ◀──(the queue is empty)── saturated
const (
	longTurn = int64(2 * time.Millisecond)
	// turnTime is the time for which a saturated loop serves connections before it fetches events again. So it is also the
	// precision of the connections' arrival times.
	turnTime = int64(time.Millisecond)
	// pieceTime limits the time for a connection that has sent many requests at once.
	pieceTime = int64(100 * time.Microsecond)
	// manyAtOnce is the minimum number of connections in a turn for noteTurn.
	manyAtOnce = 32
)

// connQueue is a queue of connections: conns[at:], the oldest first.
type connQueue struct {
	conns    []*Conn
	since    []uint32 // the time of arrival of each, as a stamp
	asked    []uint16 // the requests counted for each; Conn.Count may change meanwhile
	at       int
	requests int // the estimated number of requests of all queued connections, see Conn.asks
}

// A laterConn is a connection to serve in the next turn.
type laterConn struct {
	conn  *Conn
	asks  uint16
	since uint32
}

func (q *connQueue) size() int { return len(q.conns) - q.at }

// push appends c, which has about asks requests and has waited since the given stamp.
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

// asks returns the estimated number of requests of c in its next visit. The number for a connection of parts is known only when
// it is served; the estimate is its recent number.
func (c *Conn) asks() uint16 {
	if c.Notes&Parts == 0 {
		return 1
	}
	return max(c.Count, 1)
}

// saturation is the saturation state of a loop. The queue is loop.queue.
type saturation struct {
	on      bool
	served  int   // number of connections of the queue served in this turn
	began   int64 // when the first of these connections was served
	most    int   // the maximum number of requests that waited at once
	control overload.Queue
}

// A stamp is a time in units of 2^16 ns since the engine was made, for spans of up to a day. 0 means no time.
const stampShift = 16

func stampAt(ns int64) uint32 { return uint32(ns>>stampShift) | 1 }

// between returns the time from one stamp to a later one.
func between(from, to uint32) time.Duration { return time.Duration(int32(to-from)) << stampShift }

// enqueue appends c to the loop's queue.
func (l *loop) enqueue(c *Conn) {
	if c.queued {
		return
	}
	if (c.Notes&Parts != 0 || c.idle()) && c.flags&flagPeerDone == 0 {
		if t := c.secure(); t == nil || t.phase == tlsOpen { // otherwise its request is counted after the handshake
			l.saturation.control.Arrived(l.originOf(c.mark, l.fetched), int(c.asks()))
		}
	}
	l.queue.push(c, c.asks(), stampAt(l.ready))
	c.queued = true
}

// asked records that a connection of parts had n > 0 requests in a visit. If n clearly exceeds its recent number of requests,
// asked counts the excess as new arrivals, because it was not counted when the connection was queued.
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

// served records that c has been served at the given time. A connection is new until it has begun a request.
func (c *Conn) served(now int64) {
	c.mark = 0
	if c.Notes&Begun != 0 {
		c.mark = stampAt(now)
	}
}

// waiting returns the number of connections in the queue.
func (l *loop) waiting() int { return l.queue.size() }

// originOf returns the origin of a request that arrived at the given time on a connection with this mark.
func (l *loop) originOf(mark uint32, at int64) overload.Origin {
	if mark == 0 {
		return overload.First
	}
	return l.saturation.control.OriginOf(between(mark, stampAt(at)))
}

// fetchAll moves all other ready connections into the queue.
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

// checkQueue judges the queue, once in each turn.
func (l *loop) checkQueue() {
	p := &l.saturation
	oldest, waiting := l.oldest(), l.queue.requests
	p.most = max(p.most, waiting)
	l.waits.record(l.now, int64(oldest))
	if p.control.Look(l.now, oldest, waiting, max(int(l.count.Load()), p.most)) {
		l.e.warnOverload("event loop", oldest, waiting, p.control.Target())
	}
}

// oldest returns how long the first connection in the queue has waited. A connection that a deadline or a sweep served out of
// turn is no longer in the queue.
func (l *loop) oldest() time.Duration {
	q := &l.queue
	for i := q.at; i < len(q.conns); i++ {
		if c := q.conns[i]; c.slot >= 0 && c.state.Load() == atLoop {
			return between(q.since[i], stampAt(l.now))
		}
	}
	return 0
}

// visitNext serves the first connection of the queue.
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

// Began records that this call of Data has begun n requests, for a connection of Parts.
func (d *Driver) Began(n int) { d.begun += n }

// turnOver reports whether a saturated loop should fetch events again.
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

// carryOver ends a turn: it appends the connections for the next turn to the queue, and relaxes the loop if the queue is empty.
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

// saturate makes the loop saturated if the turn that began at the given time was long. The ready connections may have become
// ready at any time during that turn.
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

// noteTurn is called at the end of a turn that began at the given time and served n connections. If the loop is relaxed and the
// turn was long, it reports n to the controller as the length of a queue, because the connections have waited for each other.
func (l *loop) noteTurn(began int64, n int) {
	p := &l.saturation
	if p.on || n < manyAtOnce || l.e.now()-began < longTurn {
		return
	}
	p.control.Look(began, 0, n, int(l.count.Load()))
}

// Overdue reports whether the loop or the worker pool is overloaded and the requests of this call have waited too long. The
// handler must refuse them quickly. See overload.Queue.
func (d *Driver) Overdue() bool { return d.overdue }

// warnOverload logs, at most once a second, that requests are refused.
func (e *Engine) warnOverload(where string, oldest time.Duration, waiting int, target time.Duration) {
	now := e.now()
	last := e.warnedAt.Load()
	if last != 0 && now-last < int64(time.Second) || !e.warnedAt.CompareAndSwap(last, now) {
		return
	}
	e.cfg.Logger.Warn("engine: overloaded: requests that wait longer than the target are refused",
		"where", where, "oldest", oldest, "waiting", waiting, "target", target)
}
