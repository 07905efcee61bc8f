//go:build linux

package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// workers is a bounded pool of goroutines that serve connections whose handler is known to block. The most recently used
// goroutine is used first, so that surplus goroutines stay idle and can end. Connections beyond the bound wait in line, see
// line.go.
type workers struct {
	e *Engine

	mu     sync.Mutex
	idle   []*worker // most recently used last
	least  int       // minimum of idle workers since the last call of reap
	reaper *time.Timer
	line   line
	all    int // goroutines
	taken  int // calls that wait on other drivers, minus calls of workers that do not count, see permits.go
	full   atomic.Bool
	over   atomic.Bool
	closed bool

	adaptive *overload.Concurrency // nil if Config.MaxWorkers is the bound
}

// worker is a goroutine with its driver. It waits for its next job on jobs.
type worker struct {
	driver Driver
	jobs   chan task // capacity 1; closed to end the worker; made when the worker is first idle, which many never are
	task   task      // its job; the zero task after its last job
}

// newWorker returns a worker for a job, without a goroutine. The submitter of the job calls it, because its stack frames would
// enlarge the stack of the worker's goroutine.
func (w *workers) newWorker(t task) *worker {
	wk := &worker{task: t}
	d := &wk.driver
	d.engine, d.detached, d.isWorker = w.e, true, true
	if t.part != nil {
		t.part.Prepare(d)
	}
	return wk
}

// submit queues the kept input of c, which is away from its loop, for a worker. Urgent connections precede others.
func (w *workers) submit(c *Conn, urgent bool, from overload.Origin) {
	w.add(task{conn: c}, urgent, from)
}

// add is submit for any task.
func (w *workers) add(t task, urgent bool, from overload.Origin) {
	w.mu.Lock()
	defer w.unlock()
	if w.room(urgent) {
		w.start(t)
		return
	}
	w.join(job{t, w.e.now()}, urgent, from)
}

// working returns the number of workers with a job, and busy the number of waiting calls, of workers and others. w.mu is held.
func (w *workers) working() int { return w.all - len(w.idle) }
func (w *workers) busy() int    { return w.working() + w.taken }

// most returns the number of calls that may wait. w.mu is held.
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
		wk := w.newWorker(t)
		wk.driver.permit = permitTaken // working counts it already
		go wk.run()
		return
	}
	next := w.idle[n-1]
	next.driver.permit = permitTaken
	w.idle[n-1] = nil
	w.idle = w.idle[:n-1]
	w.least = min(w.least, n-1)
	next.jobs <- t
}

// next returns the next task for a worker whose job has ended. It returns the zero task if the worker must end.
func (w *workers) next(wk *worker) task {
	took := int64(0)
	if w.adaptive != nil {
		took = w.e.now() - wk.driver.now
	}
	w.mu.Lock()
	w.permit(&wk.driver, permitNone)
	if w.adaptive != nil {
		w.adaptive.Note(time.Duration(took), w.busy())
	}
	w.all-- // wk has no job
	t := w.fromLine()
	if !t.none() {
		w.all++
		wk.driver.permit = permitTaken
		w.admit() // the bound may have grown
		w.unlock()
		return t
	}
	if w.closed || len(w.idle) >= w.e.cfg.IdleWorkers {
		w.unlock()
		return task{}
	}
	w.all++
	if wk.jobs == nil {
		wk.jobs = make(chan task, 1)
	}
	w.idle = append(w.idle, wk)
	if len(w.idle) == 1 {
		w.least = 0
		w.reapLater()
	}
	w.unlock()
	return <-wk.jobs
}

// idleLife is the minimum time for which an idle worker is kept. Starting a worker costs a few microseconds, so the time may be
// short. A program that is idle then has no goroutines of workers.
const idleLife = 40 * time.Millisecond

// reapLater schedules reap after idleLife. No timer is set while no worker is idle. w.mu is held.
func (w *workers) reapLater() {
	if w.reaper == nil {
		w.reaper = time.AfterFunc(idleLife, w.reap)
	} else {
		w.reaper.Reset(idleLife)
	}
}

// reap ends the workers that had no job since the last call: the first ones of the list, since the most recently used workers are
// at its end.
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

// run is a worker's goroutine. A goroutine begins with a stack of 2 KB, of which somewhat more than 1 KB is usable, and gets one
// of 4 KB when that is not enough. Therefore the frames between run and the code of a blocking action are few and small; the code
// before and after the job is in separate functions.
func (wk *worker) run() {
	defer wk.end()
	for !wk.task.none() {
		wk.begin()
		if wk.task.part != nil {
			wk.task.part.Run(&wk.driver)
		} else {
			wk.driver.work(wk.task.conn)
		}
		wk.next()
	}
}

func (wk *worker) pool() *workers { return &wk.driver.engine.workers }

// begin begins a job.
//
//go:noinline
func (wk *worker) begin() {
	if s := wk.driver.PartScratch; s != nil && s.Spent() {
		wk.driver.PartScratch = nil
	}
	if w := wk.pool(); w.adaptive != nil {
		wk.driver.now = w.e.now()
	}
}

// next ends a job, and waits for the next one.
//
//go:noinline
func (wk *worker) next() {
	wk.task = task{}
	wk.task = wk.pool().next(wk)
}

// end ends the goroutine, also after a panic or Goexit in a job.
func (wk *worker) end() {
	if wk.task.none() {
		return
	}
	cause := recover()
	defer func() {
		if again := recover(); again != nil {
			wk.driver.engine.cfg.Logger.Error("engine: panic in Abandoned", "panic", again)
		}
		wk.driver.aborted(cause)
		wk.pool().move(&wk.driver, permitNone)
		wk.pool().replace()
	}()
	if part := wk.task.part; part != nil {
		part.Abandoned(&wk.driver)
	}
}

// work serves the kept input of a connection that is away.
func (d *Driver) work(c *Conn) {
	if d.Scratch == nil {
		d.Scratch, d.parking = d.engine.handler.NewScratch(), new(parking)
	}
	d.conn, c.driver, d.taking = c, d, meter{}
	if c.ended() {
		d.refuse(c)
	} else {
		d.serveKept(c)
	}
	d.end(c)
}

// replace is called when a panic or Goexit of a handler has ended a worker. It starts another worker if jobs wait.
func (w *workers) replace() {
	w.mu.Lock()
	defer w.unlock()
	w.all--
	w.admit()
}

// close ends the idle workers; busy workers end after their jobs.
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
