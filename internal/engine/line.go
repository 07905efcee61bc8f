//go:build linux

package engine

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// line is the queue of connections while all workers are busy. The oldest connection is served first, except in an overload of
// the line (overload.Queue): then the newest is served first, because it has the best chance to be served in time, and
// connections that have waited longer than the target are given back to their loops, which refuse them. Urgent connections are
// served before all others and are never refused.
type line struct {
	urgent, ordinary jobQueue
	control          overload.Queue
	watch            *time.Timer // runs while the line is not empty
	watched          bool
	waits            waits
}

// job is a task that waits for a worker.
type job struct {
	task
	since int64
}

// task is the work for a worker: serve a connection, or run a job about a part of one.
type task struct {
	conn *Conn
	part PartJob
}

func (t task) none() bool { return t.conn == nil && t.part == nil }

// jobQueue is a ring, the oldest job first.
type jobQueue struct {
	ring        []job
	first, size int
}

func (q *jobQueue) push(j job) {
	if q.size == len(q.ring) {
		grown := make([]job, max(64, 2*len(q.ring)))
		n := copy(grown, q.ring[q.first:])
		copy(grown[n:], q.ring[:q.first])
		q.ring, q.first = grown, 0
	}
	q.ring[(q.first+q.size)%len(q.ring)] = j
	q.size++
}

func (q *jobQueue) popOldest() job {
	j := q.ring[q.first]
	q.ring[q.first] = job{}
	q.first = (q.first + 1) % len(q.ring)
	q.size--
	return j
}

func (q *jobQueue) popNewest() job {
	q.size--
	last := &q.ring[(q.first+q.size)%len(q.ring)]
	j := *last
	*last = job{}
	return j
}

// size returns the number of waiting jobs.
func (l *line) size() int { return l.urgent.size + l.ordinary.size }

// join adds a job to the line. w.mu is held.
func (w *workers) join(j job, urgent bool, from overload.Origin) {
	l := &w.line
	if urgent {
		l.urgent.push(j)
		return
	}
	l.ordinary.push(j)
	l.control.Arrived(from, 1)
	if l.watched || l.control.Target() <= 0 {
		return
	}
	l.watched = true
	if l.watch == nil {
		l.watch = time.AfterFunc(l.control.Target(), w.checkLine)
	} else {
		l.watch.Reset(l.control.Target())
	}
}

// fromLine removes and returns the next task. It returns the zero task if the line is empty or the bound of waiting calls is
// reached. w.mu is held.
func (w *workers) fromLine() task {
	l := &w.line
	var j job
	switch {
	case l.urgent.size > 0 && w.room(true):
		j = l.urgent.popOldest()
	case l.ordinary.size == 0 || !w.room(false):
		return task{}
	case l.control.Overloaded():
		j = l.ordinary.popNewest()
	default:
		j = l.ordinary.popOldest()
	}
	now := w.e.now()
	l.waits.record(now, now-j.since)
	return j.task
}

// checkLine checks the line, and gives overdue jobs back so that they are refused. It is called again soon while the line is not
// empty.
func (w *workers) checkLine() {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.line
	now := w.e.now()
	oldest := func() time.Duration {
		if l.ordinary.size == 0 {
			return 0
		}
		return time.Duration(now - l.ordinary.ring[l.ordinary.first].since)
	}
	if l.control.Look(now, oldest(), l.ordinary.size, int(w.e.conns.Load())) {
		w.e.warnOverload("workers", oldest(), l.ordinary.size, l.control.Target())
	}
	for l.ordinary.size > 0 && l.control.Refuse(now, oldest()) {
		if j := l.ordinary.popOldest(); j.part != nil {
			j.part.Overdue()
		} else {
			w.giveBack(j.conn, msgOverdue)
		}
	}
	if l.watched = l.ordinary.size > 0; l.watched {
		l.watch.Reset(l.control.Target() / 2)
	}
}

// giveBack returns a connection from the line to its loop, with a message that says what the loop must do.
func (w *workers) giveBack(c *Conn, order messageKind) {
	w.e.away.Add(-1)
	c.state.Store(closing)
	c.loop.post(message{kind: order, conn: c})
}

// serveOverdue lets the handler refuse the requests of c, which waited in line for a worker. Events that arrived meanwhile
// are lost, so c is read afterwards.
func (l *loop) serveOverdue(d *Driver, c *Conn) bool {
	c.state.Store(atLoop)
	c.flags |= flagAgain | flagReadable
	d.overdue = true
	kept := d.visit(c)
	d.overdue = false
	return kept
}
