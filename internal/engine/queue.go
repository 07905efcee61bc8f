//go:build linux

package engine

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A loop that keeps up serves events as epoll gives them. One that does not is
// pressed: it fetches all events at once and often, and serves their connections
// from a queue of its own, a few in a turn. Only so does it know how long each
// has waited, without a look at the clock for each, since what epoll keeps has no
// time.
//
//	relaxed ──(a turn took longer than longTurn)──▶ pressed
//	relaxed ◀──(the queue is empty)── pressed
const (
	longTurn = int64(2 * time.Millisecond)
	// turnTime is about how long a pressed loop serves before it fetches events
	// again, and so how exact it knows when they came.
	turnTime = int64(time.Millisecond)
)

// queueIntervals is for how many times its target a queue must stand, see
// admission.QueueControl.
const queueIntervals = 10

func (e *Engine) newQueueControl() admission.QueueControl {
	return admission.QueueControl{Target: e.cfg.QueueTarget, Interval: queueIntervals * e.cfg.QueueTarget}
}

// pressure is a loop's part in this. The queue itself is loop.ready.
type pressure struct {
	on      bool
	served  int   // connections of the queue served in this turn
	refused int   // of these, refused
	most    int   // how many are to be served in a turn
	cost    int64 // what one takes, in ns, lately
	gone    int   // of the queue, those whose peer has finished: they make no crowd
	control admission.QueueControl
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
	if c.idle() && c.flags&flagPeerDone == 0 {
		from := l.originOf(c.mark)
		c.flags &^= flagNew | flagFresh
		switch from {
		case admission.New:
			c.flags |= flagNew
		case admission.Fresh:
			c.flags |= flagFresh
		}
		l.pressure.control.Arrived(from)
	}
	if c.flags&flagPeerDone != 0 {
		l.pressure.gone++
	}
	c.queued, c.mark = true, stampAt(l.now)
	l.ready = append(l.ready, c)
}

// originOf says where the request comes from that has just arrived on a connection
// answered last at the given stamp.
func (l *loop) originOf(answered uint32) admission.Origin {
	switch {
	case answered == 0:
		return admission.New
	case between(answered, stampAt(l.now)) > l.pressure.control.Target:
		return admission.Fresh
	}
	return admission.Returning
}

// originServed is originOf for a request that the loop has looked at; mark is what
// the connection's was.
func (l *loop) originServed(c *Conn, mark uint32) admission.Origin {
	switch {
	case !l.pressure.on:
		return l.originOf(mark)
	case c.flags&flagNew != 0:
		return admission.New
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

// look judges the queue, once a turn.
func (l *loop) look() {
	p := &l.pressure
	var oldest time.Duration
	waiting := max(len(l.ready)-l.readyAt-p.gone, 0)
	if l.readyAt < len(l.ready) {
		// A deadline or a sweep may have served it out of turn; then it may be away.
		if c := l.ready[l.readyAt]; c.state.Load() == atLoop {
			oldest = between(c.mark, stampAt(l.now))
		}
	}
	l.waits.note(l.now, int64(oldest))
	if p.control.Look(l.now, oldest, waiting, int(l.count.Load())) {
		l.e.warnOverload("event loop", oldest, waiting, p.control.Target)
	}
}

// visitNext serves the queue's first connection.
func (l *loop) visitNext(d *Driver) bool {
	c := l.ready[l.readyAt]
	l.ready[l.readyAt] = nil
	l.readyAt++
	c.queued = false
	if c.slot >= 0 && !c.noteEvent(0) {
		return true
	}
	if c.flags&flagPeerDone != 0 {
		l.pressure.gone--
	}
	if c.slot < 0 {
		return true
	}
	p := &l.pressure
	if !p.on {
		return d.visit(c)
	}
	p.served++
	d.waited = between(c.mark, stampAt(l.now))
	if p.control.Refuse(l.now, d.waited) {
		p.refused++
		d.overdue = true
	}
	kept := d.visit(c)
	d.overdue, d.waited = false, 0
	return kept
}

// turnOver reports whether a pressed loop has served enough to look for events
// again. To refuse takes hardly any time.
func (p *pressure) turnOver() bool {
	return p.on && (p.served-p.refused >= p.most || p.served >= 4*eventBatch)
}

// carryOver ends a turn: what waits goes on waiting, before what is for the next
// turn. It relaxes the loop when nothing does.
func (l *loop) carryOver() {
	p := &l.pressure
	if l.readyAt == len(l.ready) {
		l.ready, l.later, l.readyAt = l.later, l.ready[:0], 0
		if p.on && len(l.ready) == 0 {
			p.on, p.gone = false, 0
			p.control.Look(l.now, 0, 0, int(l.count.Load()))
		}
	} else {
		if l.readyAt > len(l.ready)/2 {
			n := copy(l.ready, l.ready[l.readyAt:])
			clear(l.ready[n:])
			l.ready, l.readyAt = l.ready[:n], 0
		}
		l.ready = append(l.ready, l.later...)
		clear(l.later)
		l.later = l.later[:0]
	}
	if p.on && p.served > 2*p.refused {
		cost := (l.e.now() - l.now) / int64(p.served-p.refused)
		p.cost += (cost - p.cost) / 4
		p.most = int(min(max(turnTime/max(p.cost, 1), 1), eventBatch))
	}
	p.served, p.refused = 0, 0
}

// press begins to queue when the turn that began at the given time was long.
func (l *loop) press(began int64) {
	p := &l.pressure
	if p.on || l.n == 0 || l.polls > 1 || l.now-began < longTurn {
		return
	}
	p.on, p.cost, p.most = true, turnTime/16, 16
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
