// Package logqueue passes log records to a handler without waiting for it.
//
// A slog.Handler may block without limit: a handler that writes to a full pipe blocks until the pipe is read. Code that must not
// block, such as an event loop, logs to a [Queue]. A Queue is bounded and counts the records that it drops:
//
//	Logger().Warn ──▶ queue of 1,024 ──▶ one goroutine ──▶ the handler
//	                      └▶ dropped, reported by a record of its own as soon as there is room
//
// Text that clients choose, such as a path, may be long. Therefore string attributes other than
// stacks are truncated (Short), and the queue has a bound in bytes, too.
//
// The goroutine runs only while the queue has records. It starts with the first record. For the very first record of a program it
// starts 2 ms later, unless a caller waits for that record.
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

// bound is the maximum number of waiting records. The goroutine may hold as many more.
const bound = 1024

// maxBytes is the maximum size of the text of waiting records, in bytes. The goroutine may hold as much more.
const maxBytes = 1 << 20

// maxWait is the maximum time for which a logger of Patient waits.
const maxWait = 50 * time.Millisecond

// lastRecords is the maximum time for which FlushLast waits.
const lastRecords = time.Second

// settle delays the very first record if no caller waits for it. Programs usually log it while they
// start, and the first record of a handler takes as long as the first request.
const settle = 2 * time.Millisecond

// every is the minimum time between two records about dropped records.
const every = time.Second

// A Queue passes records to one handler. Its methods are safe for concurrent use.
type Queue struct {
	to           slog.Handler
	refusedUntil [levels]atomic.Int64 // by level: the time, in ns after start, until which the handler refuses it
	start        time.Time
	blocked      atomic.Bool // the handler is slow: loggers of Patient do not wait for it

	mu         sync.Mutex
	waiting    []entry
	bytes      int           // bytes of text in waiting
	busy       bool          // the goroutine runs, or is being started
	begun      bool          // a record without a waiting caller has been added
	later      *time.Timer   // delays the very first record; nil when the goroutine has started or a caller waits
	idle       chan struct{} // closed when the goroutine ends; nil unless Flush waits for it
	dropped    uint64        // all dropped records
	reported   uint64        // number of dropped records that have been reported
	reportedAt time.Time
}

// An entry is a record and the handler for it, which has the attributes of the logger.
type entry struct {
	handler slog.Handler
	ctx     context.Context // context of the record; the handler may use its values
	record  slog.Record
	own     bool          // handler is the handler of the queue
	size    int           // bytes of text
	done    chan struct{} // closed when the record has been passed on; nil if no caller waits
}

// New returns an empty queue to a handler.
func New(to slog.Handler) *Queue {
	q := &Queue{to: to, start: time.Now()}
	if fmt.Sprintf("%T", to) == "*slog.defaultHandler" {
		// Its Enabled does not block. Calling it here saves programs a goroutine at start-up.
		for i := range q.refusedUntil {
			if !to.Enabled(context.Background(), slog.LevelDebug+slog.Level(4*i)) {
				q.refusedUntil[i].Store(int64(every))
			}
		}
	}
	return q
}

// Logger returns a logger whose records go through the queue. Enabled of the handler may block, too, so only the goroutine calls
// it: when there is a record, and for a refused level again a second later.
func (q *Queue) Logger() *slog.Logger { return slog.New(queued{q: q, to: q.to, own: true}) }

// Patient is like Logger, for code that may wait for a moment. Its calls return when the record has been passed on, or after
// maxWait. They do not wait while the handler is known to be slow.
func (q *Queue) Patient() *slog.Logger {
	return slog.New(queued{q: q, to: q.to, own: true, waits: true})
}

// levels is the number of named levels: every fourth, from Debug on.
const levels = 4

// level returns the index of the named level l.
func level(l slog.Level) (i int, named bool) {
	i = int(l-slog.LevelDebug) / 4
	return i, l >= slog.LevelDebug && i < levels && (l-slog.LevelDebug)%4 == 0
}

// Dropped returns the number of records that were not logged: there was no room for them, or the handler has panicked or called
// runtime.Goexit.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Flush waits until the queue is empty or ctx is done.
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

// FlushLast is like Flush, for the end of a program. It does not wait longer than lastRecords.
func (q *Queue) FlushLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastRecords)
	defer cancel()
	q.Flush(ctx)
}

// add adds a record to the queue if there is room.
func (q *Queue) add(e entry) (added bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= bound || q.bytes > 0 && q.bytes+e.size > maxBytes {
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

// hurry starts the goroutine immediately if its start is delayed. q.mu must be held.
func (q *Queue) hurry() {
	if q.later != nil && q.later.Stop() {
		go q.passOn(nil)
	}
	q.later = nil
}

// wait waits until e has been passed on, at most for maxWait.
func (q *Queue) wait(e *entry) {
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case <-e.done:
	case <-late.C:
		q.blocked.Store(true)
	}
}

// passOn passes batch, which was removed from the queue, to the handler, and then the rest of the queue.
func (q *Queue) passOn(batch []entry) {
	deepen(0)
	over := false
	defer func() {
		if !over { // the handler has called runtime.Goexit
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
		if batch, wait = q.nextBatch(); batch == nil && wait == 0 {
			over = true
			return
		}
		time.Sleep(wait)
	}
}

// nextBatch returns the waiting records. If there are none, it returns the time until the next report of
// dropped records, or 0 if the goroutine must end.
func (q *Queue) nextBatch() (batch []entry, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	untold := q.dropped > q.reported
	if wait = every - time.Since(q.reportedAt); untold && wait <= 0 {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "log records were dropped: the handler is too slow", 0)
		r.AddAttrs(slog.Uint64("count", q.dropped-q.reported))
		q.waiting = append(q.waiting, entry{handler: q.to, ctx: context.Background(), record: r, own: true})
		q.reported, q.reportedAt = q.dropped, time.Now()
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

// give passes one record to the handler. If the handler panics or ends the goroutine, the record counts as dropped.
func (q *Queue) give(e *entry) {
	given := false
	defer func() {
		if e.done != nil {
			close(e.done)
		}
		if given {
			return
		}
		_ = recover() // the record counts as dropped
		q.mu.Lock()
		defer q.mu.Unlock()
		q.dropped++
	}()
	if e.handler.Enabled(e.ctx, e.record.Level) {
		_ = e.handler.Handle(e.ctx, e.record) // slog.Logger ignores the error, too
	} else if i, named := level(e.record.Level); named && e.own {
		q.refusedUntil[i].Store(int64(time.Since(q.start) + every))
	}
	given = true
}

// queued is the handler of a Queue's logger.
type queued struct {
	q   *Queue
	to  slog.Handler
	own bool // to is the handler of the queue

	waits bool // callers wait, see Patient
}

// Enabled returns true unless the handler has refused the level within the last second.
func (h queued) Enabled(_ context.Context, l slog.Level) bool {
	i, named := level(l)
	return !named || !h.own || int64(time.Since(h.q.start)) >= h.q.refusedUntil[i].Load()
}

// Handle adds the record to the queue.
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

// maxText is the maximum length of text that clients choose, in bytes.
const maxText = 512

// Short returns s, or its beginning and an ellipsis if it is longer than 512 bytes.
func Short(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Error returns the value of an attribute for err. An error may quote long text from a request: its
// text is truncated by Short.
func Error(err error) any {
	text := fmt.Sprint(err) // fmt recovers a panic of err.Error
	if short := Short(text); short != text {
		return short
	}
	return err
}

// isLong reports whether an attribute must be truncated.
func isLong(a slog.Attr) bool {
	return a.Value.Kind() == slog.KindString && a.Key != "stack" && len(a.Value.String()) > maxText
}

// shorten returns a copy of a record with truncated string attributes, and the size of its text in
// bytes.
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

// WithAttrs and WithGroup call the methods of the handler immediately.
func (h queued) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queued{q: h.q, to: h.to.WithAttrs(attrs), waits: h.waits}
}
func (h queued) WithGroup(name string) slog.Handler {
	return queued{q: h.q, to: h.to.WithGroup(name), waits: h.waits}
}

// deepen grows the stack to the size that a handler needs, in one step and while the stack is almost empty. Otherwise the stack
// would be copied three times, each time with more frames, before the first record of a program is written.
//
//go:noinline
func deepen(i int) byte {
	var room [8 << 10]byte
	return room[i]
}

// Repeated limits the log lines about a repeated failure. The zero value is ready for use. It is
// safe for concurrent use.
type Repeated struct {
	mu     sync.Mutex
	count  int // failures since the latest line
	logged time.Time
}

// Note counts a failure. due reports whether a line should be logged, at most once a second. count is the number of failures
// since the previous line, including this one.
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
