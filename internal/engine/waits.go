//go:build linux

package engine

import (
	"sync/atomic"
	"time"
)

// waits stores the longest wait of the last second or two, and the longest ever. Only one goroutine at a time may call record;
// any goroutine may read.
type waits struct {
	second atomic.Int64 // start of the present second
	now    atomic.Int64 // the longest wait in it
	before atomic.Int64 // the longest wait in the second before
	most   atomic.Int64 // the longest wait ever
}

// record adds a wait that ended at the time at. It costs two loads if there was a longer wait.
func (w *waits) record(at, wait int64) {
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

// recent returns the longest wait of the last second or two, as of the time at.
func (w *waits) recent(at int64) time.Duration {
	switch age := at - w.second.Load(); {
	case age >= int64(2*time.Second):
		return 0
	case age >= int64(time.Second):
		return time.Duration(w.now.Load())
	}
	return time.Duration(max(w.now.Load(), w.before.Load()))
}

// waitTimed calls wait. If events are ready at once, it records the duration of the turn before, because an event that arrived at
// the start of that turn has waited so long.
func (l *loop) waitTimed() {
	began := l.now
	l.polls = 0
	l.wait()
	if l.polls <= 1 && l.n > 0 {
		l.waits.record(l.now, l.now-began)
	}
}
