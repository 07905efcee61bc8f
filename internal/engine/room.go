//go:build linux

package engine

import (
	"math"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A request that will make its connection hold much, as its handler knows, waits until there is room
// for that; nobody else waits because of it. Those whose address holds least go first, so that nobody
// waits behind all the requests of a client that holds much; among these, in the order in which they
// came. Those that may leave little (Probes) do not wait behind those that will leave much, and requests
// for little are not in this queue at all.

// littleOutput is the pending output in bytes that is not worth telling the handler.
const littleOutput = 64 << 10

// roomPause is how often, in ns, a loop looks whether there is room if nothing tells it.
const roomPause = int64(250 * time.Millisecond)

// ReserveRoom asks for room for n bytes of output that the request which is about to begin
// is expected to leave. With MustWait the handler calls AwaitRoom and consumes nothing of
// the request. What was granted is for the output of this call of Data; what it did not use is given back
// when that has been sent, or by [Conn.EndAhead].
func (d *Driver) ReserveRoom(c *Conn, n int64) admission.Outcome {
	outcome := d.reserveRoom(c, n)
	if c.Notes &^= asked; outcome == admission.MustWait {
		c.Notes |= asked
	}
	return outcome
}

// asksNoMore notes that c has been answered without the room that it waited for: its route has turned out to leave
// little, or it is refused for another reason.
func (c *Conn) asksNoMore() {
	c.Notes &^= asked
	if a := c.acct.Load(); a != nil {
		a.Unwait()
	}
}

func (d *Driver) reserveRoom(c *Conn, n int64) admission.Outcome {
	a := c.Account().Lend()
	if a.ReserveFirst(n) {
		return admission.Granted
	}
	if d.Inline() {
		l := d.loop
		if l.noRoom.size() > 0 && l.retried != c {
			if c.Notes&Probes != 0 && a.Probe(n) {
				return admission.Granted
			}
			return admission.MustWait // else newcomers would get the room that others wait for
		}
		turn := l.retried == c
		if l.retried = nil; turn {
			return a.ReserveAhead(n) // it is its turn for room, not to be a probe
		}
	}
	if c.Notes&Probes != 0 {
		return a.ReserveLikely(n)
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

// endProbe notes that what an answer has left is charged.
func (c *Conn) endProbe() {
	if a := c.acct.Load(); a != nil {
		a.EndProbe()
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

// retryRoom serves those that wait for room, until one must wait on, and then those that may be probes, until one of
// these must. It reports whether d still drives the loop.
func (l *loop) retryRoom(d *Driver) bool {
	l.roomAt = 0
	full := false
	for range l.noRoom.size() + 1 { // one may be asked twice
		at := l.noRoom.leastFirst(full)
		if at < 0 {
			break
		}
		c := l.noRoom.pop()
		c.queued = false
		if c.slot < 0 || !c.noteEvent(0) {
			continue // it was closed, or is being refused
		}
		c.flags &^= flagAwaitsRoom
		if l.noRoom.size() > 0 {
			l.roomAt = l.now // should d lose the loop, its next driver goes on
		}
		if l.retried = c; full {
			l.retried = nil // it is not its turn for room
		}
		if !d.visit(c) {
			return false // and nothing of the loop is d's any more
		}
		if c.slot >= 0 && c.queued && c.flags&flagAwaitsRoom != 0 {
			l.noRoom.lastTo(at)
			if full {
				break
			}
			full = true
		}
	}
	l.roomAt = 0
	l.retried = nil
	if l.noRoom.size() > 0 {
		l.roomAt = l.now + roomPause
	}
	return true
}

// leastFirst makes the first one whose address holds least the first of the queue, and returns where it was, -1 if
// there is none. If it is to be a probe, it is the last such one whose address holds nothing
// else, or little: each has its turn for room besides, and many that come at once do not make those wait who come later.
func (q *connQueue) leastFirst(probes bool) int {
	least, at := int64(math.MaxInt64), -1
	for i, c := range q.conns[q.at:] {
		if probes && c.Notes&Probes == 0 {
			continue
		}
		n := int64(-1) // it was closed, or holds nothing
		a := c.acct.Load()
		if a != nil && c.slot >= 0 {
			n = a.HeldByAddress()
		}
		switch {
		case !probes || n <= 0:
		case a.ProbesFirst():
			n = 0 // while it waits, others may not
		case n <= littleOutput:
			n = 1
		}
		if n < least || probes && n == least {
			least, at = n, q.at+i
		}
	}
	if at < 0 {
		return -1
	}
	c := q.conns[at]
	copy(q.conns[q.at+1:at+1], q.conns[q.at:at])
	q.conns[q.at] = c
	return at - q.at
}

// lastTo moves the last of a queue to the place that is so far behind the first.
func (q *connQueue) lastTo(place int) {
	n := len(q.conns) - 1
	place = min(q.at+place, n)
	last := q.conns[n]
	copy(q.conns[place+1:], q.conns[place:n])
	q.conns[place] = last
}
