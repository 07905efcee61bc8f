//go:build linux

package engine

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A request that is expected to make its connection hold much memory waits until there is room for it, in the queue of the
// budget. Requests that need little room never wait.

// littleOutput is the amount of pending output, in bytes, that is not reported to the handler.
const littleOutput = 64 << 10

// roomPause is how often, in ns, a loop asks for room if it gets no notice of it.
const roomPause = int64(250 * time.Millisecond)

// ReserveRoom reserves room for n bytes of output that the next request is expected to leave. If the outcome is MustWait, the
// handler calls AwaitRoom and consumes nothing of the request. The reservation is for the output of this call of Data. Its
// unused rest is released when that output has been sent, or by [Conn.EndAhead].
func (d *Driver) ReserveRoom(c *Conn, n int64) memory.Outcome {
	outcome := c.Account().Lend().Reserve(memory.Output, n)
	if c.Notes &^= asked; outcome == memory.MustWait {
		c.Notes |= asked
	}
	return outcome
}

// asksNoMore notes that c has been answered without the room for which it waited: its route has turned out to leave little
// output, or it is refused for another reason.
func (c *Conn) asksNoMore() {
	c.Notes &^= asked
	if a := c.acct.Load(); a != nil {
		a.Unwait()
	}
}

// EndAhead releases the rest of the room reserved for output. The answer lasts long, and its output is charged when it is
// produced. The driver owns the connection.
func (c *Conn) EndAhead() {
	if a := c.acct.Load(); a != nil {
		a.EndAhead()
	}
}

// AwaitRoom asks for another call of Data when there may be room. That call gets the input not consumed by this one.
func (d *Driver) AwaitRoom() { d.leftover = leftRoom }

// awaitRoom appends c to the connections that wait for room.
func (l *loop) awaitRoom(c *Conn) {
	l.noRoom.push(c, c.asks(), c.mark)
	if l.roomAt == 0 {
		l.roomAt = l.now + roomPause
	}
}

// retryRoom serves the connections that wait for room, until one must continue to wait, which keeps its place. It reports
// whether d still drives the loop.
func (l *loop) retryRoom(d *Driver) bool {
	l.roomAt = 0
	for range l.noRoom.size() {
		c := l.noRoom.pop()
		c.queued = false
		if c.slot < 0 || !c.noteEvent(0) {
			continue // it was closed or is being refused
		}
		c.flags &^= flagAwaitsRoom
		if l.noRoom.size() > 0 {
			l.roomAt = l.now // if d loses the loop, its next driver continues
		}
		if !d.visit(c) {
			return false // the loop is no longer d's
		}
		if c.slot >= 0 && c.queued && c.flags&flagAwaitsRoom != 0 {
			l.noRoom.lastFirst()
			break
		}
	}
	l.roomAt = 0
	if l.noRoom.size() > 0 {
		l.roomAt = l.now + roomPause
	}
	return true
}

// lastFirst moves the last connection of the queue to its head.
func (q *connQueue) lastFirst() {
	last := q.conns[len(q.conns)-1]
	copy(q.conns[q.at+1:], q.conns[q.at:])
	q.conns[q.at] = last
}
