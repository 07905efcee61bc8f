//go:build linux

package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// workers is a bounded pool of goroutines that serve connections whose
// handler is known to block. The most recently used goroutine is taken first, so that
// the others' stacks and buffers stay cold and the surplus can go. Beyond the bound
// connections wait in line, see line.go.
type workers struct {
	e *Engine

	mu     sync.Mutex
	idle   []*worker // most recently used last
	least  int       // how many were idle at the least since the last call of reap
	reaper *time.Timer
	line   line
	all    int // goroutines
	taken  int // calls that wait elsewhere, less workers' that do not count, see places.go
	full   atomic.Bool
	over   atomic.Bool
	closed bool

	adaptive *admission.Gradient // nil: Config.MaxWorkers is the bound
}

// worker is a goroutine with its driver. It waits for its next job on jobs.
type worker struct {
	jobs   chan task // capacity 1; closed: go
	driver *Driver
}

// submit has the kept input of c, which is away from its loop, served: before
// others if it is urgent.
func (w *workers) submit(c *Conn, urgent bool, from admission.Origin) {
	w.add(task{conn: c}, urgent, from)
}

// add is submit for any task.
func (w *workers) add(t task, urgent bool, from admission.Origin) {
	w.mu.Lock()
	defer w.unlock()
	if w.room(urgent) {
		w.start(t)
		return
	}
	w.join(job{t, w.e.now()}, urgent, from)
}

// working returns how many workers have a job, busy how many calls wait: those of workers
// and others. w.mu is held.
func (w *workers) working() int { return w.all - len(w.idle) }
func (w *workers) busy() int    { return w.working() + w.taken }

// most returns how many may. w.mu is held.
func (w *workers) most() int {
	if w.adaptive != nil {
		return w.adaptive.Limit()
	}
	return w.e.cfg.MaxWorkers
}

// start gives a job to an idle worker, or to a new one. w.mu is held.
func (w *workers) start(t task) {
	n := len(w.idle)
	if n == 0 {
		w.all++
		go w.run(t)
		return
	}
	next := w.idle[n-1]
	w.idle[n-1] = nil
	w.idle = w.idle[:n-1]
	w.least = min(w.least, n-1)
	next.jobs <- t
}

// next returns the next task for a worker whose job took so long, none if
// it is to go.
func (w *workers) next(wk *worker, took int64) task {
	w.mu.Lock()
	if w.adaptive != nil {
		w.adaptive.Note(time.Duration(took), w.busy())
	}
	w.all-- // wk, which is free
	t := w.fromLine()
	if !t.none() {
		w.all++
		w.admit() // the bound may have become more
		w.unlock()
		return t
	}
	if w.closed || len(w.idle) >= w.e.cfg.IdleWorkers {
		w.unlock()
		return task{}
	}
	w.all++
	w.idle = append(w.idle, wk)
	if len(w.idle) == 1 {
		w.least = 0
		w.reapLater()
	}
	w.unlock()
	return <-wk.jobs
}

// idleLife is how long an idle worker is kept at the least. To make one costs a few
// microseconds, so it need not be long; a program that counts its goroutines when all is
// quiet finds none of them.
const idleLife = 40 * time.Millisecond

// reapLater has reap called after an idleLife. While nobody is idle no timer is set. w.mu is
// held.
func (w *workers) reapLater() {
	if w.reaper == nil {
		w.reaper = time.AfterFunc(idleLife, w.reap)
	} else {
		w.reaper.Reset(idleLife)
	}
}

// reap ends the workers that had nothing to do since the last look: those that were used
// last are taken first, so these are the first of the list.
func (w *workers) reap() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wk := range w.idle[:w.least] {
		w.all--
		close(wk.jobs)
	}
	w.idle = slices.Delete(w.idle, 0, w.least)
	w.least = len(w.idle)
	if len(w.idle) > 0 {
		w.reapLater()
	}
}

// run is a worker's goroutine; t is its first job.
func (w *workers) run(t task) {
	wk := &worker{jobs: make(chan task, 1), driver: w.e.newWorkerDriver()}
	wk.driver.isWorker = true
	returned := false
	defer func() {
		if !returned {
			wk.driver.aborted(recover())
			w.move(wk.driver, placeNone)
			w.replace()
		}
	}()
	var took int64
	for ; !t.none(); t = w.next(wk, took) {
		if w.adaptive == nil {
			wk.driver.work(t)
			continue
		}
		began := w.e.now()
		wk.driver.work(t)
		took = w.e.now() - began
	}
	returned = true
}

// work serves the kept input of a connection that is away, or carries out a job of a part.
func (d *Driver) work(t task) {
	if t.part != nil {
		d.workPart(t.part)
		return
	}
	if d.Scratch == nil {
		d.Scratch = d.engine.handler.NewScratch()
	}
	c := t.conn
	d.conn, c.driver, d.taking, d.sent = c, d, meter{}, 0
	d.enter()
	if c.ended() {
		d.refuse(c)
	} else {
		d.serveKept(c)
	}
	d.end(c)
	d.engine.workers.move(d, placeNone)
}

// replace makes up for a worker that a handler's panic or Goexit ended.
func (w *workers) replace() {
	w.mu.Lock()
	defer w.unlock()
	w.all--
	w.admit()
}

// close ends the idle workers; busy ones end when they are done.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, wk := range w.idle {
		w.all--
		close(wk.jobs)
	}
	w.idle, w.least = nil, 0
}
