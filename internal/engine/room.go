//go:build linux

package engine

import (
	"math"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A request that is expected to make its connection hold much memory waits until there is room for it; no other request waits
// because of it. Requests of the address that holds the least go first, so the many requests of a client that holds much do not
// delay other clients. Among requests of addresses that hold the same amount, the first to arrive goes first. Requests that may
// leave little output (Probes) do not wait for requests that will leave much. Requests that need little room are not in this
// queue at all.

// littleOutput is the amount of pending output, in bytes, that is not reported to the handler.
const littleOutput = 64 << 10

// roomPause is how often, in ns, a loop checks for room if it gets no notice of it.
const roomPause = int64(250 * time.Millisecond)

// ReserveRoom reserves room for n bytes of output that the next request is expected to leave. If the outcome is MustWait, the
// handler calls AwaitRoom and consumes nothing of the request. The reservation is for the output of this call of Data. Its
// unused rest is released when that output has been sent, or by [Conn.EndAhead].
func (d *Driver) ReserveRoom(c *Conn, n int64) admission.Outcome {
	outcome := d.reserveRoom(c, n)
	if c.Notes &^= asked; outcome == admission.MustWait {
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
			return admission.MustWait // else new requests would get the room before those that wait
		}
		turn := l.retried == c
		if l.retried = nil; turn {
			return a.ReserveAhead(n) // it is its turn for room, and it is no probe
		}
	}
	if c.Notes&Probes != 0 {
		return a.ReserveLikely(n)
	}
	return a.ReserveAhead(n)
}

// EndAhead releases the rest of the room reserved for output. The answer lasts long, and its output is charged when it is
// produced. The driver owns the connection.
func (c *Conn) EndAhead() {
	if a := c.acct.Load(); a != nil {
		a.EndAhead()
	}
}

// endProbe notes that the output which an answer has left is charged.
func (c *Conn) endProbe() {
	if a := c.acct.Load(); a != nil {
		a.EndProbe()
	}
}

// AwaitRoom asks for another call of Data when there may be room. That call gets the input not consumed by this one.
func (d *Driver) AwaitRoom() { d.leftover = leftRoom }

// awaitRoom appends c to the queue for room.
func (l *loop) awaitRoom(c *Conn) {
	l.noRoom.push(c, c.asks(), c.mark)
	if l.roomAt == 0 {
		l.roomAt = l.now + roomPause
	}
}

// retryRoom serves the connections that wait for room, until one must continue to wait. Then it serves those that may be
// probes, until one of these must continue to wait. It reports whether d still drives the loop.
func (l *loop) retryRoom(d *Driver) bool {
	l.roomAt = 0
	full := false
	for range l.noRoom.size() + 1 { // one may be tried twice
		at := l.noRoom.leastFirst(full)
		if at < 0 {
			break
		}
		c := l.noRoom.pop()
		c.queued = false
		if c.slot < 0 || !c.noteEvent(0) {
			continue // it was closed or is being refused
		}
		c.flags &^= flagAwaitsRoom
		if l.noRoom.size() > 0 {
			l.roomAt = l.now // if d loses the loop, its next driver continues
		}
		if l.retried = c; full {
			l.retried = nil // a probe, out of its turn for room
		}
		if !d.visit(c) {
			return false // the loop is no longer d's
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

// leastFirst moves the first connection whose address holds the least to the head of the queue. It returns its former position,
// or -1 if there is none. For a probe it chooses the last connection whose address holds nothing else, or little: each
// connection also has its turn for room, and many early probes do not delay later ones.
func (q *connQueue) leastFirst(probes bool) int {
	least, at := int64(math.MaxInt64), -1
	for i, c := range q.conns[q.at:] {
		if probes && c.Notes&Probes == 0 {
			continue
		}
		n := int64(-1) // closed, or holds nothing
		a := c.acct.Load()
		if a != nil && c.slot >= 0 {
			n = a.HeldByAddress()
		}
		switch {
		case !probes || n <= 0:
		case a.ProbesFirst():
			n = 0 // while it waits, others may not probe
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

// lastTo moves the last connection of the queue to the given position, counted from the head.
func (q *connQueue) lastTo(place int) {
	n := len(q.conns) - 1
	place = min(q.at+place, n)
	last := q.conns[n]
	copy(q.conns[place+1:], q.conns[place:n])
	q.conns[place] = last
}
