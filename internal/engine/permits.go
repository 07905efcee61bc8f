//go:build linux

package engine

// Config.MaxWorkers bounds the number of calls of the handler that may wait at once: on a worker, or on a driver that was taken
// over or gave up its loop in an action. An action on a driver may wait at any time, so the number may exceed the bound. Until it
// is below the bound again, jobs for workers wait in line.
//
//	none    ──(Enter without a loop, takeover, Detach in an action)──▶ taken
//	taken   ──(waits for its peer, in blocking.go, or for memory)──▶ yielded ──(the wait is over)──▶ taken
//	taken, yielded ──(Answering)──▶ over ──(Enter)──▶ taken
//	any     ──(Leave; on a worker, the end of its job)──▶ none
//
// A slow peer does not delay the calls of other clients: a call that waits for its peer yields its permit, and a call that has
// begun to send its answer has none.

// permit is the state of a driver's permit. It decides whether the driver's call counts against Config.MaxWorkers.
type permit uint8

const (
	permitNone    permit = iota
	permitTaken          // the driver's call may wait
	permitYielded        // the driver's call waits for its peer or for memory
	permitOver           // the driver's call has begun its answer
)

// urgentShare is the divisor of the bound that gives the number of additional permits for urgent jobs. Urgent jobs run on them
// while ordinary jobs wait.
const urgentShare = 8

// Answering reports that the running code begins to send its answer. From then on the call no longer counts against
// Config.MaxWorkers, however slow the peer is. The state ends with Leave.
func (d *Driver) Answering() {
	if d.loop != nil {
		d.loop.takeMu.Lock() // a takeover has either ended or will call Scratch.Detached later
		defer d.loop.takeMu.Unlock()
	}
	d.engine.workers.move(d, permitOver)
}

// AtCapacity reports whether the number of waiting calls has reached Config.MaxWorkers. Then a call that could wait should be
// handed off, so that it waits in line.
func (d *Driver) AtCapacity() bool { return d.engine.workers.full.Load() }

// OverCapacity reports whether the number of waiting calls exceeds Config.MaxWorkers.
func (d *Driver) OverCapacity() bool { return d.engine.workers.over.Load() }

// move changes d's permit and admits waiting jobs. It changes nothing and returns false if the permit is already in state to, or
// cannot change from its present state to that state (see the top of this file).
func (w *workers) move(d *Driver, to permit) (moved bool) {
	w.mu.Lock()
	defer w.unlock()
	if moved = w.permit(d, to); moved {
		w.admit()
	}
	return moved
}

// permit is move without admitting jobs. w.mu is held.
func (w *workers) permit(d *Driver, to permit) (moved bool) {
	from := d.permit
	switch {
	case from == to,
		from == permitNone && to != permitTaken,
		from == permitOver && to == permitYielded:
		return false
	}
	d.permit = to
	w.taken += d.counts(to) - d.counts(from)
	return true
}

// counts returns the number that d adds to workers.taken if its permit is p. workers.working already counts every worker with a
// job. So the number is 0 for a worker with permitTaken, and -1 for a worker whose call does not count.
func (d *Driver) counts(p permit) int {
	n := 0
	if p == permitTaken {
		n = 1
	}
	if d.isWorker && p != permitNone {
		n-- // workers.working counts it already
	}
	return n
}

// room reports whether one more call may wait. w.mu is held.
func (w *workers) room(urgent bool) bool {
	most := w.most()
	if urgent {
		most += most / urgentShare
	}
	return w.busy() < most
}

// yieldPermit gives the permit of d to other calls while the call of d waits for its peer, until regainPermit. It reports whether
// d had a permit.
func (w *workers) yieldPermit(d *Driver) bool { return w.move(d, permitYielded) }

// YieldPermit gives the permit of the running call to other calls, until RegainPermit. It is for a call that waits for something
// that only other calls can release, such as memory.
func (d *Driver) YieldPermit() { d.engine.workers.yieldPermit(d) }

// RegainPermit ends YieldPermit. It does not wait for a free permit.
func (d *Driver) RegainPermit() { d.engine.workers.regainPermit(d) }

func (w *workers) regainPermit(d *Driver) {
	w.mu.Lock()
	defer w.unlock()
	if d.permit == permitYielded { // otherwise the call has begun its answer or has ended
		d.permit = permitTaken
		w.taken++
	}
}

// enter is Enter for a driver without a loop.
func (d *Driver) enter() { d.engine.workers.move(d, permitTaken) }

// leave is Leave for a driver without a loop.
func (d *Driver) leave() {
	if !d.isWorker {
		d.engine.workers.move(d, permitNone)
	}
}

// admit starts waiting jobs while there are free permits. w.mu is held.
func (w *workers) admit() {
	for {
		t := w.fromLine()
		if t.none() {
			return
		}
		w.start(t)
	}
}

// unlock publishes full and over, for readers without the lock, and releases w.mu.
func (w *workers) unlock() {
	beyond := w.busy() - w.most()
	if full := beyond >= 0; full != w.full.Load() {
		w.full.Store(full)
	}
	if over := beyond > 0; over != w.over.Load() {
		w.over.Store(over)
	}
	w.mu.Unlock()
}
