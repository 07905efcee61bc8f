//go:build linux

package engine

import "time"

// RecallAfter is the time for which a loop waits, after Recall, for the rest of an incomplete message.
const RecallAfter = 2 * time.Millisecond

// A recall is one call of Recall; at is the time of the loop at which it is due.
type recall struct {
	conn  *Conn
	gen   uint32
	proto State
	at    int64
}

// recalls is a loop's queue of recalls, in order of time. Whether a connection has continued meanwhile is checked only at the
// due time. Most connections have, so they cost nothing.
type recalls struct {
	queue []recall
	next  int // queue[next:] are still pending
}

// Recall requests, in [Handler.Data], another call of Data with the kept input. The call is made if no more input arrives
// within RecallAfter and Proto has not changed. It is for input that is likely to be complete at once. Away from the loop,
// [Handler.Timeout] is called instead, later.
func (d *Driver) Recall() {
	c := d.conn
	if d.detached {
		c.SetDeadline(RecallAfter)
		return
	}
	l := d.loop
	l.recalls.queue = append(l.recalls.queue, recall{c, c.gen, c.Proto, l.now + int64(RecallAfter)})
}

// CallAgain schedules a call of Data with the kept input, soon after [Handler.Timeout], in which it may be called.
func (c *Conn) CallAgain() { c.flags |= flagAgain }

// recall serves the connections whose recall is due. It reports whether d still drives the loop. Input that arrived before that
// was served in this turn.
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

// dueAt returns the time of the next recall, or 0 if there is none.
func (q *recalls) dueAt() int64 {
	if q.next == len(q.queue) {
		return 0
	}
	return q.queue[q.next].at
}
