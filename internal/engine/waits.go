//go:build linux

package engine

import (
	"sync/atomic"
	"time"
)

// waits remembers the longest wait of the last second or two, and the longest ever.
// One goroutine at a time notes, any may read.
type waits struct {
	second atomic.Int64 // when the present second began
	now    atomic.Int64 // the longest in it
	before atomic.Int64 // in the second before
	most   atomic.Int64
}

// note notes that something has waited, until the time at. It costs two loads
// when others have waited longer.
func (w *waits) note(at, wait int64) {
	if age := at - w.second.Load(); age >= int64(time.Second) {
		last := w.now.Load()
		if age >= int64(2*time.Second) {
			last = 0
		}
		w.before.Store(last)
		w.now.Store(0)
		w.second.Store(at)
	}
	if wait > w.now.Load() {
		w.now.Store(wait)
		if wait > w.most.Load() {
			w.most.Store(wait)
		}
	}
}

// recent returns the longest wait of the last second or two, seen at the time at.
func (w *waits) recent(at int64) time.Duration {
	switch age := at - w.second.Load(); {
	case age >= int64(2*time.Second):
		return 0
	case age >= int64(time.Second):
		return time.Duration(w.now.Load())
	}
	return time.Duration(max(w.now.Load(), w.before.Load()))
}

// waitTimed is wait, and notes how long the turn before it was when there is more to do
// at once: so long has waited what came when it had just begun.
func (l *loop) waitTimed() {
	began := l.now
	l.polls = 0
	l.wait()
	if l.polls <= 1 && l.n > 0 {
		l.waits.note(l.now, l.now-began)
	}
}
