//go:build linux

package engine

import "time"

// Deadlines are ticks since the engine was made. A tick is coarse enough that a loop with many idle connections wakes rarely,
// and fine enough for head, body and idle timeouts: 2^26 ns, about 67 ms.
const tickShift = 26

// wheelSlots is the wheel's horizon in ticks, about 69 s. It is a power of two. A connection with a later deadline is filed at
// the horizon, where its deadline is checked again.
const wheelSlots = 1024

// secondTicks is the number of ticks in a second, rounded up.
const secondTicks = uint32(time.Second>>tickShift) + 1

func tickAt(ns int64) uint32 { return uint32(ns>>tickShift) + 1 } // 0 means none

// deadlineTick returns the first tick that begins no earlier than after from now.
func deadlineTick(now int64, after time.Duration) uint32 {
	return tickAt(now+int64(after)) + 1
}

// startOf is the inverse of tickAt: it returns the start of tick in ns.
func startOf(tick uint32) int64 { return int64(tick-1) << tickShift }

// wheel is a timer wheel. Slot t mod wheelSlots has the doubly linked list of the connections to be checked at tick t.
//
// The wheel is lazy: when a deadline moves later, as an idle timeout does with every request, the connection stays in its slot.
// At the tick of that slot it moves to the slot of the new deadline. Links are indexes into loop.conns, so the wheel does not
// allocate and costs 8 bytes for each connection.
//
// Invariant: every tick in the wheel is in (done, done+wheelSlots].
type wheel struct {
	heads [wheelSlots]int32 // -1: empty
	done  uint32            // all slots up to this tick have been emptied
	next  uint32            // no connection is filed under an earlier tick; 0: the wheel is empty
	count int
}

func (w *wheel) init(now uint32) {
	for i := range w.heads {
		w.heads[i] = -1
	}
	w.done = now
}

// due returns the tick at which c must be checked, 0 for never.
func (c *Conn) due() uint32 {
	if c.out != nil {
		return c.out.check
	}
	return c.deadline
}

// refile files c under tick, or at the horizon if tick is later.
func (l *loop) refile(c *Conn, tick uint32) {
	w := &l.wheel
	l.unfile(c)
	tick = min(max(tick, w.done+1), w.done+wheelSlots)
	head := &w.heads[tick%wheelSlots]
	c.filed, c.prev, c.next = tick, -1, *head
	if c.next >= 0 {
		l.conns[c.next].prev = c.slot
	}
	*head = c.slot
	w.count++
	if w.next == 0 || tick < w.next {
		w.next = tick
	}
}

func (l *loop) unfile(c *Conn) {
	if c.filed == 0 {
		return
	}
	if c.prev >= 0 {
		l.conns[c.prev].next = c.next
	} else {
		l.wheel.heads[c.filed%wheelSlots] = c.next
	}
	if c.next >= 0 {
		l.conns[c.next].prev = c.prev
	}
	c.filed = 0
	l.wheel.count--
}

// expired removes one connection filed under now or earlier from the wheel. If there is none, it returns nil and updates
// wheel.next.
func (l *loop) expired(now uint32) *Conn {
	w := &l.wheel
	if w.next == 0 || w.next > now {
		w.done = max(w.done, now)
		return nil
	}
	for w.done < now {
		if w.count == 0 {
			w.done = now
			break
		}
		if head := w.heads[(w.done+1)%wheelSlots]; head >= 0 {
			c := l.conns[head]
			l.unfile(c)
			return c
		}
		w.done++
	}
	w.next = 0
	if w.count > 0 {
		w.next = w.done + 1
		for w.heads[w.next%wheelSlots] < 0 {
			w.next++
		}
	}
	return nil
}

// refileIfEarlier keeps the invariant that c is filed no later than it is due.
func (l *loop) refileIfEarlier(c *Conn) {
	if due := c.due(); due != 0 && (c.filed == 0 || due < c.filed) {
		l.refile(c, due)
	}
}

// refileNeeded reports whether a connection that returns to its loop might be filed too late. While the connection was away, its
// loop may have moved it in the wheel: it is filed under mark, or under a tick at most a second from now.
func (c *Conn) refileNeeded() bool {
	due := c.due()
	if due == 0 {
		return false
	}
	return c.mark == 0 || due < c.mark || due < tickAt(c.loop.e.now())+secondTicks+1
}

// expire handles a connection at its tick, and reports whether d still drives the loop.
func (d *Driver) expire(c *Conn, now uint32) bool {
	l := d.loop
	if c.state.Load() != atLoop {
		l.refile(c, now+secondTicks)
		return true
	}
	due := c.due()
	if due > now {
		l.refile(c, due)
	}
	if due == 0 || due > now {
		return true
	}
	d.begin(c)
	switch {
	case c.out != nil:
		if c.tooSlow(d.engine, now) {
			c.flags |= flagCloseNow
		}
	case c.flags&flagLingering != 0:
		c.flags |= flagCloseNow
	case d.engine.draining.Load() && c.isSilent():
		// end closes the connection.
	case c.awaitsHeader() && c.flags&flagReadable == 0:
		d.engine.noteHeader(c, errHeaderSlow)
	case c.greeting() && !c.awaitsHeader():
		d.greetedTooSlowly(c)
	case d.engine.draining.Load() && c.idle():
		// The time for last requests is over: end closes the connection, unless a request has arrived.
		c.flags |= flagReadable
		d.receive(c)
	case c.flags&(flagReadable|flagAgain) != 0 && !c.rests():
		// Input of the peer has arrived and waits for the server. This time does not count against the peer.
		c.deadline = now + secondTicks
	default:
		d.timeOut(c)
	}
	return d.end(c)
}

// timeOut informs the handler that the deadline of c has passed.
func (d *Driver) timeOut(c *Conn) {
	c.deadline = 0
	if p := c.protocol(); p != nil {
		p.Timeout(d, c, c.kept())
	} else {
		d.engine.handler.Timeout(d, c, c.kept())
	}
	if c.deadline == 0 {
		c.flags |= flagCloseAfter
	}
	d.send(c)
}
