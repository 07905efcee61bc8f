//go:build linux

package engine

import "runtime/debug"

// A takeover allows a handler to block although it runs on an event loop.
//
// A loop's epoch is even while its driver runs engine code or quick handler code, and odd between Enter and Leave. It only
// grows. The goroutine that increments an odd epoch by compare-and-swap owns the loop afterwards:
//
//	driver   Enter  6 → (store) 7        in the handler's action
//	driver   Leave  7 → (CAS) 8          quick: the driver keeps the loop
//	monitor         7 → (CAS) 8          slow: the monitor passes the loop on,
//	                                     and the driver's own CAS will fail
//
// The epoch also makes the loop's fields visible to the fresh driver: the old driver writes them before Enter stores the epoch,
// the monitor's CAS reads the epoch, and the fresh driver starts after that.

// Enter marks the start of code that may block. If the code does not reach Leave soon, the loop goes to another driver and this
// driver becomes detached. Enter and Leave must not be nested. On a detached driver they only count the call against
// Config.MaxWorkers.
func (d *Driver) Enter() {
	if d.detached {
		d.enter()
		return
	}
	if cap(d.Out) > maxOut {
		d.returnOut()
	}
	d.epoch++
	d.loop.epoch.Store(d.epoch)
	if m := &d.engine.monitor; !m.awake.Load() {
		m.wake()
	}
}

// Leave marks the end of code that may block. It reports whether the driver still has its loop.
func (d *Driver) Leave() bool {
	if d.detached {
		d.leave()
		d.endTimeout()
		d.endPart()
		return false
	}
	if d.loop.epoch.CompareAndSwap(d.epoch, d.epoch+1) {
		d.epoch++
		d.isPart = false
		if d.loop.out != nil {
			d.takeOut()
		}
		if d.hasTimeout() {
			d.endTimeout()
		}
		return true
	}
	d.lost()
	d.leave()
	d.endTimeout()
	d.endPart()
	d.correctCharge()
	return false
}

// lost records that the monitor has taken the loop. The lock waits until the monitor has marked the connection as away.
func (d *Driver) lost() {
	d.loop.takeMu.Lock()
	defer d.loop.takeMu.Unlock()
	d.detached, d.taking = true, meter{}
}

// Detach gives up the loop before an operation that is known to block. It has no effect on a detached driver. It may be called
// between Enter and Leave.
func (d *Driver) Detach() {
	if d.detached {
		return
	}
	l := d.loop
	next := (d.epoch | 1) + 1 // even, and greater than the epoch that Leave would set
	if !l.epoch.CompareAndSwap(d.epoch, next) {
		d.lost()
		return
	}
	d.detached, d.taking = true, meter{}
	d.conn.setAway()
	d.chargeBuffers(d.unheld())
	if d.epoch&1 == 1 && d.Scratch.Detached(false) {
		d.enter()
	}
	go d.engine.newDriver(l, next).run()
	if d.hasTimeout() {
		d.setTimer()
	}
}

// takeOver gives the loop to a fresh driver if its present driver is still in the action of the given odd epoch. collected
// reports whether the action overlaps a garbage collection.
func (l *loop) takeOver(epoch uint64, collected bool) bool {
	l.takeMu.Lock()
	defer l.takeMu.Unlock()
	if !l.epoch.CompareAndSwap(epoch, epoch+1) {
		return false
	}
	d := l.current.driver
	if d.isPart {
		l.e.takeovers.Add(1)
		l.passPart(d, epoch+1, collected)
		return true
	}
	l.current.setAway()
	d.chargeBuffers(d.sizeAtBegin)
	if d.Scratch.Detached(collected) {
		d.enter()
	}
	if d.hasTimeout() {
		d.setTimer()
	}
	l.e.takeovers.Add(1)
	go l.e.newDriver(l, epoch+1).run()
	return true
}

// run drives the loop until the loop ends or is lost.
func (d *Driver) run() {
	returned := false
	defer func() {
		if !returned {
			d.aborted(recover())
		}
	}()
	if d.resume == nil || d.resumePart() {
		for d.loop.turn(d) {
		}
	}
	returned = true
	d.engine.retire(d)
}

// aborted cleans up after a call of the handler that ended in a panic or in Goexit. The connection is closed. If d still drives a
// loop, another driver continues with it. The driver is not used again, because its scratch memory may be inconsistent.
func (d *Driver) aborted(cause any) {
	c := d.conn
	if cause != nil {
		d.engine.cfg.Logger.Error("engine: panic in a handler", "panic", cause, "stack", string(debug.Stack()))
	}
	ofPart, rest := d.isPart, d.partRest()
	if d.epoch&1 == 1 || d.detached {
		d.Leave()
	}
	d.engine.buffers.abandon(d.inBuf) // the handler may have passed views of it to other goroutines
	if d.expired {
		// For goroutines that the handler has started, the connection stays taken.
		d.claim.Store(d.call | taken)
	}
	defer d.succeed(c, ofPart)
	if c == nil || d.expired && !ofPart {
		return
	}
	answered := false
	defer func() {
		if again := recover(); again != nil {
			d.engine.cfg.Logger.Error("engine: panic in Abandoned", "panic", again)
		}
		if !d.detached && d.epoch&1 == 1 { // Abandoned runs application code, which may end its goroutine, too
			d.Leave()
		}
		switch {
		case d.expired:
		case ofPart: // the other parts must keep their answers and requests
			d.engine.keepRest(c, rest)
			d.send(c)
		case answered:
			c.flags |= flagCloseAfter
			d.send(c)
		}
	}()
	if d.to == nil {
		d.engine.handler.Abandoned(d, c, cause)
		answered = true
	} else if ofPart {
		d.to.Abandoned(d)
	}
}

// succeed ends d's ownership of the connection and of the loop. The connection is closed unless the call was about a part of
// it.
func (d *Driver) succeed(c *Conn, ofPart bool) {
	if c != nil {
		if !d.expired && !ofPart {
			c.flags |= flagCloseAfter
		}
		if !d.end(c) {
			return
		}
	}
	if !d.detached {
		go d.engine.newDriver(d.loop, d.epoch).run()
	}
}
