//go:build linux

package engine

import (
	"math"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A request that will make its connection hold much, as its handler knows, is not begun until
// there is room for that: it waits, for nobody but itself. Those whose address holds least go
// first, so that nobody waits behind all the requests of one who holds much, and else those who came
// first. Who asks for little is not in this queue and does not stop because of it.

// littleOutput is the pending output in bytes that is not worth telling the handler.
const littleOutput = 64 << 10

// roomPause is how often, in ns, a loop looks whether there is room if nothing tells it.
const roomPause = int64(250 * time.Millisecond)

// ReserveRoom asks for room for n bytes of output that the request which is about to begin
// is expected to leave. With MustWait the handler calls AwaitRoom and consumes nothing of
// the request. What was granted is for the output
// of this call of Data; what is left of it when that has been sent is given back, or by [Conn.EndAhead].
func (d *Driver) ReserveRoom(c *Conn, n int64) admission.Outcome {
	a := c.Account().Lend()
	if a.ReserveFirst(n) {
		return admission.Granted
	}
	if d.Inline() {
		l := d.loop
		if l.noRoom.size() > 0 && l.retried != c {
			return admission.MustWait // else the room of those who wait would go to those who come
		}
		l.retried = nil
	}
	return a.ReserveAhead(n)
}

// EndAhead gives back what is left of the room that was reserved for output: the answer goes on for long, and what comes
// of it counts when it comes. The connection is the driver's.
func (c *Conn) EndAhead() {
	if a := c.acct.Load(); a != nil {
		a.EndAhead()
	}
}

// AwaitRoom asks for another call of Data, with the input not consumed by this one, when there
// may be room.
func (d *Driver) AwaitRoom() { d.leftover = leftRoom }

// awaitRoom has c wait for room.
func (l *loop) awaitRoom(c *Conn) {
	l.noRoom.push(c, c.asks(), c.mark)
	if l.roomAt == 0 {
		l.roomAt = l.now + roomPause
	}
}

// retryRoom serves those that wait for room, until one must wait on. It reports whether d
// still drives the loop.
func (l *loop) retryRoom(d *Driver) bool {
	l.roomAt = 0
	for range l.noRoom.size() {
		l.noRoom.leastFirst()
		c := l.noRoom.pop()
		c.queued = false
		if c.slot < 0 || !c.noteEvent(0) {
			continue // it was closed, or is being refused
		}
		c.flags &^= flagAwaitsRoom
		if l.noRoom.size() > 0 {
			l.roomAt = l.now // should d lose the loop, its next driver goes on
		}
		l.retried = c
		if !d.visit(c) {
			return false // and nothing of the loop is d's any more
		}
		if c.slot >= 0 && c.queued && c.flags&flagAwaitsRoom != 0 {
			l.noRoom.toFront()
			break
		}
	}
	l.roomAt = 0
	l.retried = nil
	if l.noRoom.size() > 0 {
		l.roomAt = l.now + roomPause
	}
	return true
}

// leastFirst makes the first one whose address holds least the first of the queue.
func (q *connQueue) leastFirst() {
	least, at := int64(math.MaxInt64), q.at
	for i, c := range q.conns[q.at:] {
		n := int64(-1) // it was closed, or holds nothing
		if a := c.acct.Load(); a != nil && c.slot >= 0 {
			n = a.HeldByAddress()
		}
		if n < least {
			least, at = n, q.at+i
		}
	}
	c := q.conns[at]
	copy(q.conns[q.at+1:at+1], q.conns[q.at:at])
	q.conns[q.at] = c
}

// toFront makes the last of a queue the first.
func (q *connQueue) toFront() {
	n := len(q.conns) - 1
	last := q.conns[n]
	copy(q.conns[q.at+1:], q.conns[q.at:n])
	q.conns[q.at] = last
}
