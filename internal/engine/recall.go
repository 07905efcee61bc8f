//go:build linux

package engine

import "time"

// RecallAfter is how long a loop waits, after Recall, for more of what a connection has
// begun to send, unless it comes before.
const RecallAfter = 2 * time.Millisecond

// A recall is one that was asked for: at is the loop's time.
type recall struct {
	conn  *Conn
	gen   uint32
	proto any
	at    int64
}

// recalls are those of a loop, first come first. One whose connection has gone on
// meanwhile is found out only when its time comes: most do, and pay nothing for it.
type recalls struct {
	queue []recall
	next  int // queue[next:] are still to be looked at
}

// Recall asks in [Handler.Data] for another call of Data with what input is kept if
// nothing more comes within a short time, and Proto is the same by then. It is for what
// is likely to be complete at once. Away from the loop [Handler.Timeout] is called
// instead, later.
func (d *Driver) Recall() {
	c := d.conn
	if d.detached {
		c.SetDeadline(RecallAfter)
		return
	}
	l := d.loop
	l.recalls.queue = append(l.recalls.queue, recall{c, c.gen, c.Proto, l.now + int64(RecallAfter)})
}

// CallAgain has Data called with what input is kept, soon after [Handler.Timeout], in which
// it may be called.
func (c *Conn) CallAgain() { c.flags |= flagAgain }

// recall serves the connections whose time has come. It reports whether d still drives
// the loop. What had come for them before was served in this turn.
func (l *loop) recall(d *Driver) bool {
	q := &l.recalls
	for q.next < len(q.queue) && q.queue[q.next].at <= l.now {
		r := q.queue[q.next]
		q.queue[q.next] = recall{}
		q.next++
		c := r.conn
		if c.slot < 0 || c.gen != r.gen || c.state.Load() != atLoop || c.Proto == nil || c.Proto != r.proto ||
			c.flags&(flagCloseAfter|flagCloseNow|flagLingering) != 0 {
			continue
		}
		c.flags |= flagAgain
		if !c.queued && !d.visit(c) {
			return false
		}
	}
	switch {
	case q.next == len(q.queue):
		q.queue, q.next = q.queue[:0], 0
	case q.next >= 64 && q.next > len(q.queue)/2:
		n := copy(q.queue, q.queue[q.next:])
		clear(q.queue[n:])
		q.queue, q.next = q.queue[:n], 0
	}
	return true
}

// dueAt returns when the next one is to be looked at, 0 for never.
func (q *recalls) dueAt() int64 {
	if q.next == len(q.queue) {
		return 0
	}
	return q.queue[q.next].at
}
