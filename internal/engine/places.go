//go:build linux

package engine

// Config.MaxWorkers bounds how many calls of the handler may wait at once, wherever they
// do: on a worker, or on a driver that was taken over or gave up its loop in an action. A
// driver cannot be kept from that any more, so the bound may be passed; then whoever asks
// for a worker waits in line until it is not.
//
//	none    ──(Enter without a loop, takeover, Detach in an action)──▶ holds
//	holds   ──(it waits for its peer, in blocking.go, or for room)──▶ lends ──(that is over)──▶ holds
//	holds, lends ──(Answering)──▶ over, until the next Enter
//	any     ──(Leave; of a worker, the end of its job)──▶ none
//
// Nobody is kept waiting because another's peer is slow: a call that waits for its peer
// lends its place, and one that has begun to send its answer has none.

// place is what a driver has of those that Config.MaxWorkers bounds.
type place uint8

const (
	placeNone  place = iota
	placeTaken       // its call may wait
	placeLent        // ... but waits for its peer
	placeOver        // its call has begun its answer
)

// urgentShare says how many urgent jobs may go beyond the bound, one in so many of it: they
// go on when all others wait.
const urgentShare = 8

// Answering says that the code which runs sends its answer from now on: it may take as
// long as the peer likes, and does not count against Config.MaxWorkers any more. It
// ends with Leave.
func (d *Driver) Answering() {
	if d.loop != nil {
		d.loop.takeMu.Lock() // a takeover is under way or sees what the handler has noted
		defer d.loop.takeMu.Unlock()
	}
	d.engine.workers.move(d, placeOver)
}

// AtCapacity reports whether as many calls wait as may, so that one which could wait as well
// should be handed off, to wait in line.
func (d *Driver) AtCapacity() bool { return d.engine.workers.full.Load() }

// OverCapacity reports whether more than that do.
func (d *Driver) OverCapacity() bool { return d.engine.workers.over.Load() }

// move changes d's place. It does nothing if the change makes no sense, because another
// goroutine of the same call was first.
func (w *workers) move(d *Driver, to place) (moved bool) {
	w.mu.Lock()
	defer w.unlock()
	if moved = w.place(d, to); moved {
		w.admit()
	}
	return moved
}

// place is move without what follows from it. w.mu is held.
func (w *workers) place(d *Driver, to place) (moved bool) {
	from := d.place
	switch {
	case from == to,
		from == placeNone && to != placeTaken,
		from == placeOver && to == placeLent:
		return false
	}
	d.place = to
	w.taken += d.counts(to) - d.counts(from)
	return true
}

// counts returns what d adds to the calls that wait, beside the workers that have a job.
func (d *Driver) counts(p place) int {
	n := 0
	if p == placeTaken {
		n = 1
	}
	if d.isWorker && p != placeNone {
		n-- // it is among the workers already
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

// lend has others go on while d's call waits for its peer, until regain. It is false if
// that changes nothing.
func (w *workers) lend(d *Driver) bool { return w.move(d, placeLent) }

// Lend has others go on while the call that runs waits for what only they can give, such as
// room, until Regain.
func (d *Driver) Lend() { d.engine.workers.lend(d) }

// Regain ends Lend.
func (d *Driver) Regain() { d.engine.workers.regain(d) }

func (w *workers) regain(d *Driver) {
	w.mu.Lock()
	defer w.unlock()
	if d.place == placeLent { // else the call has begun its answer, or has ended
		d.place = placeTaken
		w.taken++
	}
}

// enter is Enter for a driver without a loop.
func (d *Driver) enter() { d.engine.workers.move(d, placeTaken) }

// leave is Leave for it.
func (d *Driver) leave() {
	if !d.isWorker {
		d.engine.workers.move(d, placeNone)
	}
}

// admit gives jobs to workers as long as there are both. w.mu is held.
func (w *workers) admit() {
	for {
		t := w.fromLine()
		if t.none() {
			return
		}
		w.start(t)
	}
}

// unlock ends a change of w. What is full, or over, is for those who do not lock.
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
