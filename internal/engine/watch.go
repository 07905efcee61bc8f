//go:build linux

package engine

import (
	"sync/atomic"
	"time"
)

// A call that waits briefly, for one answer of a database say, is over before the monitor looks at its loop
// twice. Meanwhile the loop stands still. The handler has some calls watched to find them:
//
//	driver   Watch    notes the clock, its thread and the voluntary switches of that; starts a witness
//	driver            calls the code, which may wait
//	driver   Waited   compares
//
// A call has waited if it took at least shortWait and one of these is so:
//
//   - Its thread has slept, or the goroutine is on another one now: the counts differ. The system taking the processor
//     from a thread that computes is no voluntary switch.
//   - The witness has run on the thread meanwhile. A thread with other goroutines to run does not sleep when one
//     of them parks. The witness is the next to run on the thread that started it, so it runs there
//     only if the driver has given way. Another thread may steal it, but such a thread has
//     nothing else to do, and takes the other goroutines, too.
type watch struct {
	began    int64 // on the engine's clock; 0: the call is not watched
	switches int64 // of the thread
	unseen   uint8 // calls since one was watched as a sample
	*witness       // made by the first call that is watched closely
}

const (
	// shortWait is the shortest wait that counts, in ns. To serve a request on a worker costs
	// a few microseconds.
	shortWait = int64(30 * time.Microsecond)

	// sampleEvery is how many calls there are to one sample. A prime number, so that clients which take turns do not
	// hide one of their requests.
	sampleEvery = 251
)

// witness is a goroutine that tells whether it has run before a call returned.
type witness struct {
	thread  atomic.Int64 // of the call that is watched; 0: none; witnessed: the goroutine has run there
	started atomic.Bool  // the goroutine has not run yet
}

const witnessed = -1

// Watch is called between Enter and Leave, before code of which Waited is to report whether it waits. It is watched closely
// or, of many calls, as a sample.
func (d *Driver) Watch(closely bool) {
	d.unseen++
	if closely || d.unseen >= sampleEvery {
		d.watchNow(closely)
	}
}

func (d *Driver) watchNow(closely bool) {
	d.unseen = 0
	if d.detached {
		return // it holds up no loop
	}
	if closely {
		d.callWitness()
	}
	d.began, d.switches = d.engine.now(), d.engine.cfg.CountSwitches()
}

// Waited reports whether code that was watched since Watch has waited. It is false if the loop was taken over meanwhile, of
// which Handler.Detached was told.
func (d *Driver) Waited() bool { return d.began != 0 && d.hasWaited() }

func (d *Driver) hasWaited() bool {
	waited := d.watch.waited(d.engine.now(), d.engine.cfg.CountSwitches())
	return waited && d.loop.epoch.Load() == d.epoch // code of others may give up the loop on another goroutine
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
	if !w.started.Load() { // else that of an earlier call is the next to run still
		w.started.Store(true)
		go w.run()
	}
}

func (w *witness) run() {
	w.started.Store(false)
	w.thread.CompareAndSwap(threadID(), witnessed)
}
