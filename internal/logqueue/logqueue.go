// Package logqueue passes log records on without ever waiting for whoever takes them.
//
// A slog.Handler may block for as long as it likes: one that writes to a full pipe does
// so until the pipe is read. What must go on meanwhile, such as an event loop, logs by a
// [Queue]. That has a bound, and counts what it drops:
//
//	Logger().Warn ──▶ queue of 1,024 ──▶ one goroutine ──▶ the handler
//	                      └▶ dropped, said by a record of its own as soon as there is room
//
// Text that clients choose, such as a path, may be long: string attributes are cut (Short), but for stacks, and the
// queue has a bound in bytes, too.
//
// The goroutine lasts only while there is something in the queue. It begins when there is something to pass on, or 2 ms later
// for the first record of all that nobody waits for.
package logqueue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// bound is how many records may wait, beside as many that are being passed on.
const bound = 1024

// mostBytes is how many bytes of text may wait, beside as many that are being passed on.
const mostBytes = 1 << 20

// patience is how long the logger of Patient waits.
const patience = 50 * time.Millisecond

// lastRecords is how long FlushLast waits.
const lastRecords = time.Second

// settle is how much later the first record is passed on that nobody waits for: it is mostly one of a program that
// starts, and the first record of a handler takes as long as the first request does.
const settle = 2 * time.Millisecond

// every is how often at most a record says how many were dropped.
const every = time.Second

// A Queue is the way to one handler. Its methods may be called by any goroutine.
type Queue struct {
	to      slog.Handler
	unwant  [levels]atomic.Int64 // until when, in ns after start, the handler need not be given a level
	start   time.Time
	blocked atomic.Bool // the handler takes long, and nobody waits for it

	mu      sync.Mutex
	waiting []entry
	bytes   int           // of text in waiting
	busy    bool          // a goroutine passes records on, or is about to
	begun   bool          // the first record that nobody waits for has come
	later   *time.Timer   // has it passed on; nil when that has begun, or somebody waits
	idle    chan struct{} // closed when it ends; nil unless somebody waits for that
	dropped uint64        // ever
	said    uint64        // of these, how many a record has told of
	saidAt  time.Time
}

// An entry is a record and the handler that is to take it, which has its attributes.
type entry struct {
	handler slog.Handler
	ctx     context.Context // whose values the handler may ask for
	record  slog.Record
	own     bool          // handler is the queue's
	size    int           // bytes of text
	done    chan struct{} // closed when it has been passed on; nil if nobody waits
}

// New returns an empty queue to a handler.
func New(to slog.Handler) *Queue {
	q := &Queue{to: to, start: time.Now()}
	if fmt.Sprintf("%T", to) == "*slog.defaultHandler" {
		// It says at once what it wants, which saves programs a goroutine when they start.
		for i := range q.unwant {
			if !to.Enabled(context.Background(), slog.LevelDebug+slog.Level(4*i)) {
				q.unwant[i].Store(int64(every))
			}
		}
	}
	return q
}

// Logger returns a logger whose records go through the queue. Whether the handler wants a
// level is asked of it when it gets a record, and again a second later: it may block in that, too.
func (q *Queue) Logger() *slog.Logger { return slog.New(queued{q: q, to: q.to, own: true}) }

// Patient is Logger for code that may wait a moment: its records have been passed on when it
// returns, unless that takes longer than patience, or has lately.
func (q *Queue) Patient() *slog.Logger {
	return slog.New(queued{q: q, to: q.to, own: true, waits: true})
}

// levels is how many levels have a name: from Debug on, every four.
const levels = 4

// level returns which of the levels with a name l is.
func level(l slog.Level) (i int, named bool) {
	i = int(l-slog.LevelDebug) / 4
	return i, l >= slog.LevelDebug && i < levels && (l-slog.LevelDebug)%4 == 0
}

// Dropped returns how many records found no room, so far, or made the handler panic or end its goroutine.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Flush waits until the queue is empty or ctx ends.
func (q *Queue) Flush(ctx context.Context) {
	q.mu.Lock()
	if !q.busy {
		q.mu.Unlock()
		return
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	q.hurry()
	idle := q.idle
	q.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// FlushLast is Flush before a program may end, which does not wait long for a handler that blocks.
func (q *Queue) FlushLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastRecords)
	defer cancel()
	q.Flush(ctx)
}

// add puts a record into the queue, if there is room.
func (q *Queue) add(e entry) (added bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= bound || q.bytes > 0 && q.bytes+e.size > mostBytes {
		q.dropped++
		return false
	}
	q.waiting = append(q.waiting, e)
	q.bytes += e.size
	switch waits := e.done != nil; {
	case q.busy && waits:
		q.hurry()
	case q.busy:
	case !q.begun && !waits:
		q.busy, q.begun = true, true
		q.later = time.AfterFunc(settle, func() { q.passOn(nil) })
	default:
		q.busy = true
		go q.passOn(nil)
	}
	return true
}

// hurry has the first record passed on now, if that is still to come. q.mu is held.
func (q *Queue) hurry() {
	if q.later != nil && q.later.Stop() {
		go q.passOn(nil)
	}
	q.later = nil
}

// wait waits until e has been passed on, but not for a handler that blocks.
func (q *Queue) wait(e *entry) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-e.done:
	case <-late.C:
		q.blocked.Store(true)
	}
}

// passOn empties the queue, after batch, which was taken from it.
func (q *Queue) passOn(batch []entry) {
	deepen(0)
	over := false
	defer func() {
		if !over { // a handler has ended the goroutine (runtime.Goexit)
			go q.passOn(batch)
		}
	}()
	for {
		for len(batch) > 0 {
			next := &batch[0]
			batch = batch[1:]
			q.give(next)
		}
		var wait time.Duration
		if batch, wait = q.take(); batch == nil && wait == 0 {
			over = true
			return
		}
		time.Sleep(wait)
	}
}

// take returns what waits. When nothing does, it returns how long it is until there is
// something to tell of, 0 when there is not and the goroutine is to end.
func (q *Queue) take() (batch []entry, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	untold := q.dropped > q.said
	if wait = every - time.Since(q.saidAt); untold && wait <= 0 {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "log records were dropped: the handler took them too slowly", 0)
		r.AddAttrs(slog.Uint64("count", q.dropped-q.said))
		q.waiting = append(q.waiting, entry{handler: q.to, ctx: context.Background(), record: r, own: true})
		q.said, q.saidAt = q.dropped, time.Now()
	}
	batch = q.waiting
	q.waiting, q.bytes = nil, 0
	switch {
	case batch != nil:
		return batch, 0
	case untold:
		return nil, wait
	}
	q.busy = false
	q.blocked.Store(false)
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	return nil, 0
}

// give passes one record on. A handler that panics, or ends the goroutine, loses it.
func (q *Queue) give(e *entry) {
	given := false
	defer func() {
		if e.done != nil {
			close(e.done)
		}
		if given {
			return
		}
		_ = recover() // there is nobody left to tell but by the count
		q.mu.Lock()
		defer q.mu.Unlock()
		q.dropped++
	}()
	if e.handler.Enabled(e.ctx, e.record.Level) {
		_ = e.handler.Handle(e.ctx, e.record) // as slog.Logger does
	} else if i, named := level(e.record.Level); named && e.own {
		q.unwant[i].Store(int64(time.Since(q.start) + every))
	}
	given = true
}

// queued is the handler of a Queue's logger.
type queued struct {
	q   *Queue
	to  slog.Handler
	own bool // to is the queue's

	waits bool // see Patient
}

// Enabled is true unless the handler has said otherwise within the last second.
func (h queued) Enabled(_ context.Context, l slog.Level) bool {
	i, named := level(l)
	return !named || !h.own || int64(time.Since(h.q.start)) >= h.q.unwant[i].Load()
}

// Handle puts the record into the queue.
func (h queued) Handle(ctx context.Context, r slog.Record) error {
	record, size := shorten(r)
	e := entry{handler: h.to, ctx: ctx, record: record, own: h.own, size: size}
	waits := h.waits && !h.q.blocked.Load()
	if waits {
		e.done = make(chan struct{})
	}
	if h.q.add(e) && waits {
		h.q.wait(&e)
	}
	return nil
}

// mostText is how long, in bytes, text may be that clients choose.
const mostText = 512

// Short returns s, or its beginning and an ellipsis if it is longer than 512 bytes.
func Short(s string) string {
	if len(s) <= mostText {
		return s
	}
	end := mostText
	for end > mostText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Error returns an error for an attribute. It may quote a request at any length: a text that is too long is cut.
func Error(err error) any {
	text := fmt.Sprint(err) // it recovers a panic of Error
	if short := Short(text); short != text {
		return short
	}
	return err
}

// isLong reports whether an attribute is cut.
func isLong(a slog.Attr) bool {
	return a.Value.Kind() == slog.KindString && a.Key != "stack" && len(a.Value.String()) > mostText
}

// shorten returns a copy of a record with Short for its string attributes, and how many bytes of text it has.
func shorten(r slog.Record) (short slog.Record, size int) {
	size = len(r.Message)
	long := false
	r.Attrs(func(a slog.Attr) bool {
		if a.Value.Kind() == slog.KindString {
			size += len(a.Value.String())
		}
		long = long || isLong(a)
		return true
	})
	if !long {
		return r.Clone(), size
	}
	size = len(r.Message)
	short = slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if isLong(a) {
			a.Value = slog.StringValue(Short(a.Value.String()))
		}
		if a.Value.Kind() == slog.KindString {
			size += len(a.Value.String())
		}
		short.AddAttrs(a)
		return true
	})
	return short, size
}

// WithAttrs and WithGroup are those of the handler, and called at once.
func (h queued) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queued{q: h.q, to: h.to.WithAttrs(attrs), waits: h.waits}
}
func (h queued) WithGroup(name string) slog.Handler {
	return queued{q: h.q, to: h.to.WithGroup(name), waits: h.waits}
}

// deepen has a stack with room for what a handler calls, at once, and while there is nothing on it: it would be
// copied three times, each time with more to adjust, before the first record of a program is written.
//
//go:noinline
func deepen(i int) byte {
	var room [8 << 10]byte
	return room[i]
}

// Repeated failures are worth a log line, but not one for each request. The zero value is ready for use.
type Repeated struct {
	mu     sync.Mutex
	count  int // since the latest line
	logged time.Time
}

// Note counts one more. It reports whether a line is due, once a second at most, and how many there have been since the
// line before, this one included.
func (f *Repeated) Note() (count int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	now := time.Now()
	if !f.logged.IsZero() && now.Sub(f.logged) < every {
		return 0, false
	}
	count, f.count, f.logged = f.count, 0, now
	return count, true
}
