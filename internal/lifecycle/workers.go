package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Workers are the background workers of a program. The zero value has none. The methods are safe for concurrent use.
type Workers struct {
	mu      sync.Mutex
	ctx     context.Context // of all workers; nil until they start
	cancel  context.CancelFunc
	stopped bool
	waiting []func() // start the workers that were added before start
	counts  []*WorkerCounts
	running int
	idle    chan struct{} // closed by the last worker; made by stop
}

// WorkerCounts are the counts of the workers of one name.
type WorkerCounts struct {
	Name    string
	Running int
	Ended   uint64
	Errors  uint64
	Panics  uint64
}

// Go runs f on a new goroutine when the workers have started, or at once if they have. stop ends the context of f. After stop, Go
// has no effect.
func (w *Workers) Go(name string, f func(context.Context) error, log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		log.Warn("background worker not started: the app was shut down", "worker", name)
		return
	}
	i := slices.IndexFunc(w.counts, func(c *WorkerCounts) bool { return c.Name == name })
	if i < 0 {
		i = len(w.counts)
		w.counts = append(w.counts, &WorkerCounts{Name: name})
	}
	counts := w.counts[i]
	begin := func() {
		counts.Running++
		w.running++
		go w.run(counts, f, log)
	}
	if w.ctx == nil {
		w.waiting = append(w.waiting, begin)
		return
	}
	begin()
}

// run calls f and counts its result.
func (w *Workers) run(counts *WorkerCounts, f func(context.Context) error, log *slog.Logger) {
	returned := false
	var err error
	defer func() {
		v := recover()
		panicked := !returned && v != nil // otherwise runtime.Goexit
		// The error of an ended context, which most workers return, is not a failure.
		failed := err != nil && w.ctx.Err() == nil
		switch {
		case panicked:
			log.Error("panic in a background worker", "worker", counts.Name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		case failed:
			log.Error("background worker failed", "worker", counts.Name, "error", fmt.Sprint(err)) // Sprint recovers a panic of err.Error
		default:
			log.Debug("background worker ended", "worker", counts.Name)
		}
		w.ended(counts, panicked, failed)
	}()
	err = f(w.ctx)
	returned = true
}

func (w *Workers) ended(counts *WorkerCounts, panicked, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts.Ended++
	if panicked {
		counts.Panics++
	}
	if failed {
		counts.Errors++
	}
	counts.Running--
	w.running--
	if w.running == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// start starts the waiting workers at its first call.
func (w *Workers) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx != nil || w.stopped {
		return
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for _, begin := range w.waiting {
		begin()
	}
	w.waiting = nil
}

// stop ends the context of all workers and waits for them, until ctx ends. The error names the workers that still run.
func (w *Workers) stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped, w.waiting = true, nil
	if w.cancel != nil {
		w.cancel()
	}
	if w.running == 0 {
		w.mu.Unlock()
		return nil
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, c := range w.counts {
		if c.Running > 0 {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("background workers still running: %s: %w", strings.Join(names, ", "), ctx.Err())
}

// Counts returns the counts of each name, in the order in which Go was first called with the names.
func (w *Workers) Counts() []WorkerCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := make([]WorkerCounts, len(w.counts))
	for i, c := range w.counts {
		counts[i] = *c
	}
	return counts
}
