//go:build linux

package engine

import (
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// A call that waits briefly, for one answer of a database for example, is over before the monitor checks its loop twice.
// Meanwhile the loop stands still. The handler watches some calls to find them:
//
//	driver   Watch    notes the clock, its thread and the thread's voluntary switches; starts a witness
//	driver            calls the code, which may wait
//	driver   Waited   compares
//
// A call has waited if it took at least shortWait and one of these is true:
//
//   - Its thread has slept, or the goroutine is now on another thread: the counts differ. If the system takes the processor
//     from a thread that computes, that is no voluntary switch.
//   - The witness has run on the thread meanwhile. A thread with other goroutines to run does not sleep when one
//     of them parks. The witness is the next to run on the thread that started it, so it runs there
//     only if the driver has parked. Another thread may steal it, but such a thread is otherwise
//     idle, and steals the other goroutines, too.
//
// A call that overlaps a garbage collection does not count. The collector makes calls that allocate wait for it, and preempts their
// goroutines. With a small memory limit, one of eight calls that only compute would count.
type watch struct {
	began    int64 // on the engine's clock; 0: the call is not watched
	switches int64 // of the thread
	pauses   int64 // for garbage collections
	unseen   uint8 // calls since the last sample
	*witness       // made by the first call that is watched closely
}

const (
	// shortWait is the shortest wait that counts, in ns. To serve a request on a worker costs a few microseconds.
	shortWait = int64(30 * time.Microsecond)

	// sampleEvery is the number of calls for one sample. It is a prime number, so that a regular pattern of requests does not
	// hide one route from the samples.
	sampleEvery = 251
)

// witness is a goroutine that reports whether it has run before a call returned.
type witness struct {
	thread  atomic.Int64 // of the watched call; 0: none; witnessed: the goroutine has run there
	started atomic.Bool  // the goroutine has not run yet
}

const witnessed = -1

// Watch is called between Enter and Leave, before the code for which Waited reports whether it waits. The call is watched
// closely, or, as one of many, as a sample.
func (d *Driver) Watch(closely bool) {
	d.unseen++
	if closely || d.unseen >= sampleEvery {
		d.watchNow(closely)
	}
}

func (d *Driver) watchNow(closely bool) {
	d.unseen = 0
	if d.detached {
		return // it blocks no loop
	}
	if closely {
		d.callWitness()
	}
	d.pauses = d.engine.cfg.CountPauses()
	d.began, d.switches = d.engine.now(), d.engine.cfg.CountSwitches()
}

// Waited reports whether the code since Watch has waited. It is false if the loop was taken over meanwhile; then
// Scratch.Detached was called.
func (d *Driver) Waited() bool { return d.began != 0 && d.hasWaited() }

func (d *Driver) hasWaited() bool {
	waited := d.watch.waited(d.engine.now(), d.engine.cfg.CountSwitches()) && !d.engine.collectedSince(&d.pauses)
	return waited && d.loop.epoch.Load() == d.epoch // the application's code may give up the loop on another goroutine
}

// waited ends a watch, at now.
func (w *watch) waited(now, switches int64) bool {
	gaveWay := switches != w.switches
	if w.witness != nil {
		gaveWay = w.thread.Swap(0) == witnessed || gaveWay
	}
	long := now-w.began >= shortWait
	w.began = 0
	return long && gaveWay
}

// callWitness starts a witness.
func (d *Driver) callWitness() {
	if d.witness == nil {
		d.witness = new(witness)
	}
	w := d.witness
	w.thread.Store(threadID())
	if !w.started.Load() { // otherwise the witness of an earlier call is still the next to run
		w.started.Store(true)
		go w.run()
	}
}

func (w *witness) run() {
	w.started.Store(false)
	w.thread.CompareAndSwap(threadID(), witnessed)
}

// collectedSince reports whether the time since pauses was counted overlaps a garbage collection, and counts again.
func (e *Engine) collectedSince(pauses *int64) bool {
	before := *pauses
	*pauses = e.cfg.CountPauses()
	return *pauses != before || before%2 == 1
}

// pauseSamples has samples to read the number of pauses into.
var pauseSamples = sync.Pool{New: func() any { return &[1]metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}} }}

// countPauses returns how often the runtime has paused the program for garbage collections: twice for each.
func countPauses() int64 {
	sample := pauseSamples.Get().(*[1]metrics.Sample)
	defer pauseSamples.Put(sample)
	metrics.Read(sample[:])
	n := uint64(0)
	for _, of := range sample[0].Value.Float64Histogram().Counts {
		n += of
	}
	return int64(n)
}
