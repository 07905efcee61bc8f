//go:build linux

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// As the memory budget runs out, the engine yields in this order:
//
//	pending output reaches MaxPending    connections that have not taken their answers are not
//	                                     read; at twice as much none are (see holds)
//	a quarter of the budget is left      nothing is accepted, and idle connections are closed bit
//	                                     by bit, those first that have been idle for longest
//	the budget is exceeded               what has waited longest is refused (Handler.Refused):
//	                                     input behind answers that are not taken, then unfinished
//	                                     requests, then those in line for a worker
//
// The first two pass only when clients take their answers. If pressure stands, clients
// that take nothing are not waited for as long as Config.WriteGrace: those whose
// answer is stuck for StallTime are cut off, as slow readers, until half of MaxPending is
// free. Of others no answer that has begun is broken: what is refused is told so behind it.
// Input that has arrived is kept, and room made for it afterwards, so for a moment
// the budget is exceeded by what one read brings. Each step is counted in Config.Shed
// and, now and then, logged.

// memoryPause is how long, in ns, a loop without memory for more connections waits
// before it looks again.
const memoryPause = 100e6

// roomPause is how long, in ns, a loop that could not make enough room refuses what is
// new without looking at the others again.
const roomPause = 10e6

// pauseForMemory stops accepting if the budget is nearly used up.
func (l *loop) pauseForMemory() bool {
	budget := l.e.cfg.Budget
	if !budget.Tight() {
		return false
	}
	if n, due := l.e.cfg.Shed.Note(admission.AcceptPaused); due {
		l.e.cfg.Logger.Warn(fmt.Sprintf("engine: the %v is nearly used up: accepting pauses", budget), "held", budget.Held(), "count", n)
	}
	l.pauseAccept(l.now + memoryPause)
	l.dropIdle()
	l.relieveSoon()
	return true
}

// retryAccept ends a pause if its reason may be over.
func (l *loop) retryAccept() {
	if l.e.cfg.Budget.Tight() {
		l.acceptor.resumeAt = l.now + memoryPause
		l.dropIdle()
		return
	}
	l.resumeAccept()
}

const (
	// idleShare is which part of the idle connections goes at a time, and leastIdle how
	// many at least.
	idleShare, leastIdle = 16, 16
)

// dropIdle closes some of the loop's idle connections, longest idle first, to free
// their descriptors and their memory here and in the system. One that has been used
// within the last second is spared: it may be in use.
func (l *loop) dropIdle() {
	const busy = flagReadable | flagPeerDone | flagEOF | flagAgain | flagHandOff | flagCloseAfter | flagCloseNow | flagLingering
	newest := ^uint32(0)
	if open := l.e.cfg.OpenTimeout; open > 0 {
		newest = deadlineTick(l.now, open) - secondTicks
	}
	var idle []*Conn
	for _, c := range l.conns {
		if c != nil && c.state.Load() == atLoop && c.idle() && c.flags&busy == 0 && !c.queued && c.deadline != 0 && c.deadline < newest {
			idle = append(idle, c)
		}
	}
	slices.SortStableFunc(idle, func(a, b *Conn) int { return cmp.Compare(a.deadline, b.deadline) })
	for _, c := range idle[:min(len(idle), max(len(idle)/idleShare, leastIdle))] {
		if unread, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ); err == nil && unread > 0 {
			continue // a request is waiting to be read
		}
		if n, due := l.e.cfg.Shed.Note(admission.IdleDropped); due {
			l.e.cfg.Logger.Warn("engine: no memory or descriptors for more connections: idle ones are closed, the oldest first", "idle", len(idle), "count", n)
		}
		l.close(c)
	}
}

// reliefPause is how often, in ns, a loop under pressure looks for clients that take
// nothing.
const reliefPause = 250e6

// relieveSoon has relieve called, and again as long as there is pressure.
func (l *loop) relieveSoon() {
	if l.reliefAt == 0 {
		l.pressedSince, l.reliefAt = l.now, l.now+reliefPause
	}
}

// relieve cuts off clients that take nothing, and if that is not enough, refuses what
// has waited longest until connections can be accepted.
func (l *loop) relieve(d *Driver) {
	e := l.e
	l.reliefAt = 0
	if e.pending() < e.cfg.MaxPending && !e.cfg.Budget.Tight() {
		return
	}
	l.cutStalled()
	if bound := e.cfg.Budget.Bound(); e.cfg.Budget.Tight() && l.now-l.pressedSince >= int64(e.cfg.StallTime) {
		l.refuseWaiting(d, e.cfg.Budget.Held()-(bound-bound/4)+bound/16)
	}
	l.readOn()
	l.reliefAt = l.now + reliefPause
}

// readOn ends the wait of those who by now have taken what they were answered: nothing
// tells when, and the pending output of others may stay above its bound for long.
func (l *loop) readOn() {
	l.held = slices.DeleteFunc(l.held, func(c *Conn) bool {
		if c.slot >= 0 && c.state.Load() == atLoop && l.e.holds(c) {
			return false
		}
		l.later = append(l.later, c)
		return true
	})
}

// cutStalled closes connections whose peers have taken nothing for Config.StallTime, the
// longest stalled first.
func (l *loop) cutStalled() {
	e, now := l.e, tickAt(l.now)
	most := uint32(e.cfg.StallTime>>tickShift) + 1
	var stalled []*Conn
	for _, c := range l.conns {
		if c == nil || c.state.Load() != atLoop || c.out == nil || c.flags&flagCloseNow != 0 {
			continue
		}
		q := c.out
		left := q.bytes + c.unsent()
		if q.leftSince == 0 || left < q.left {
			q.left, q.leftSince = left, now
		} else if now-q.leftSince >= most {
			stalled = append(stalled, c)
		}
	}
	slices.SortStableFunc(stalled, func(a, b *Conn) int { return cmp.Compare(a.out.leftSince, b.out.leftSince) })
	for _, c := range stalled {
		if e.pending() < e.cfg.MaxPending/2 && !e.cfg.Budget.Tight() {
			return
		}
		if n, due := e.cfg.Shed.Note(admission.SlowReader); due {
			e.cfg.Logger.Warn(fmt.Sprintf("engine: the %v is short of room for answers: clients that take nothing are cut off", e.cfg.Budget),
				"latest", c.RemoteAddr(), "pending", e.pending(), "count", n)
		}
		l.close(c)
	}
}

// exceeded returns by how many bytes the budget is exceeded, and a little more, so
// that room is not made for each read anew; 0 if it is not.
func (e *Engine) exceeded() int64 {
	b := e.cfg.Budget
	bound, held := b.Bound(), b.Held()
	if bound <= 0 || held <= bound {
		return 0
	}
	return held - bound + bound/16
}

// makeRoom refuses what has waited longest while the budget is exceeded. It may be
// called while d serves a connection, whose input is kept.
func (l *loop) makeRoom(d *Driver) {
	if over := l.e.exceeded(); over > 0 {
		l.refuseWaiting(d, over)
	}
}

// refuseWaiting refuses what has waited longest until that has given back over bytes.
func (l *loop) refuseWaiting(d *Driver, over int64) {
	serving := d.conn
	waiting := []*Conn{serving}
	if l.now >= l.noRoom {
		waiting = l.unanswered()
	}
	for _, c := range waiting {
		if over <= 0 {
			break
		}
		before := l.e.cfg.Budget.Held()
		switch c {
		case nil:
		case serving:
			d.refuse(c)
		default:
			d.begin(c)
			d.refuse(c)
			d.end(c)
		}
		over -= before - l.e.cfg.Budget.Held()
	}
	if d.conn = serving; serving != nil {
		d.begin(serving)
	}
	if over > 0 && l.now >= l.noRoom {
		l.noRoom = l.now + roomPause
		l.e.workers.refuseOldest(over)
		for _, other := range l.e.loops {
			if serving != nil && other != l {
				other.post(message{kind: msgRoom})
			}
		}
	}
}

// unanswered returns the loop's connections that hold input, in the order in which they
// are to be refused.
func (l *loop) unanswered() []*Conn {
	var all []*Conn
	for _, c := range l.conns {
		if c != nil && c.state.Load() == atLoop && (c.in != nil || c.Proto != nil) && !c.ending() {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *Conn) int {
		switch {
		case a.out != nil && b.out != nil:
			return cmp.Compare(a.out.since, b.out.since)
		case a.out != nil:
			return -1
		case b.out != nil:
			return 1
		}
		return cmp.Compare(a.deadline-1, b.deadline-1) // the deadline of what has begun does not move; none is last
	})
	return all
}

// ending reports whether the connection is to be closed anyway.
func (c *Conn) ending() bool { return c.flags&(flagCloseAfter|flagCloseNow|flagLingering) != 0 }

// refuse has the handler refuse what c has waiting, and closes c after that.
func (d *Driver) refuse(c *Conn) {
	e := d.engine
	if n, due := e.cfg.Shed.Note(admission.NoMemory); due {
		e.cfg.Logger.Warn(fmt.Sprintf("engine: the %v is used up: what has waited longest is refused", e.cfg.Budget), "held", e.cfg.Budget.Held(), "count", n)
	}
	e.handler.Refused(d, c, c.kept())
	c.flags = c.flags&^(flagAgain|flagHandOff) | flagCloseAfter | flagLinger
	d.send(c)
	e.buffers.put(c.in)
	c.in = nil
}

// refuseOldest has jobs refused that have waited longest for a worker, until those
// hold over bytes of input.
func (w *workers) refuseOldest(over int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for over > 0 {
		q := &w.line.others
		if q.size == 0 {
			q = &w.line.urgent
		}
		if q.size == 0 {
			return
		}
		c := q.popOldest().conn
		if c.in != nil {
			over -= int64(c.in.held)
		}
		w.giveBack(c, msgRefuse)
	}
}
