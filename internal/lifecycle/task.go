package lifecycle

import (
	"context"
	"sync"
)

// A Task runs beside servers, once, until it is stopped. The zero value does not run. Its methods may be called by any
// goroutine.
type Task struct {
	mu      sync.Mutex
	begun   bool
	stopped bool
	cancel  context.CancelFunc
	ended   chan struct{}
}

// Start runs f, whose context ends with Stop, unless the task has been started or stopped.
func (t *Task) Start(f func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun || t.stopped {
		return
	}
	t.begun = true
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.cancel, t.ended = cancel, ended
	go func() {
		defer close(ended)
		defer cancel()
		f(ctx)
	}()
}

// Stop ends the task, and returns when it has ended or ctx has.
func (t *Task) Stop(ctx context.Context) {
	t.mu.Lock()
	t.stopped = true
	begun := t.begun
	t.mu.Unlock()
	if !begun {
		return
	}
	t.cancel()
	select {
	case <-t.ended:
	case <-ctx.Done():
	}
}
