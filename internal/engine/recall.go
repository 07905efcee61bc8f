//go:build linux

package engine

import "time"

// RecallAfter is the time for which a loop waits, after Recall, for the rest of an incomplete message.
const RecallAfter = 2 * time.Millisecond

// A recall is the effect of one call of Recall. It is due when the time of the loop reaches at.
type recall struct {
	conn  *Conn
	gen   uint32
	proto State
	at    int64
}

// recalls is a loop's queue of recalls, ordered by due time. Most connections receive more input before their recall is due.
// Their entries stay in the queue and are skipped when they are due.
type recalls struct {
	queue []recall
	next  int // queue[next:] are still pending
}

// Recall requests another call of [Handler.Data] with the kept input, if no more input arrives within RecallAfter and Proto does
// not change. Data calls it when the rest of a message is likely to arrive immediately. On a detached driver, Recall sets the
// deadline of the connection to the same time instead, and [Handler.Timeout] is called.
func (d *Driver) Recall() {
	c := d.conn
	if d.detached {
		c.SetDeadline(RecallAfter)
		return
	}
	l := d.loop
	l.recalls.queue = append(l.recalls.queue, recall{c, c.gen, c.Proto, l.now + int64(RecallAfter)})
}

// CallAgain may be called in [Handler.Timeout]. It schedules a call of Data with the kept input soon after Timeout returns.
func (c *Conn) CallAgain() { c.flags |= flagAgain }

// recall serves the connections whose recall is due. It reports whether d still drives the loop. The loop calls it after it has
// served the input that arrived in this turn.
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
