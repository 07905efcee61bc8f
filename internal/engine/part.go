//go:build linux

package engine

import (
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/overload"
)

// A call of the handler may be about one part of a connection, such as one of many streams. The other parts must not wait for
// such a call. So code between EnterPart and Leave that blocks loses both its loop and its connection:
//
//	driver   EnterPart  in: │ consumed │ rest │   Out: answers so far
//	monitor             takes the loop; copies the rest of the input, moves Out
//	fresh               sends Out and calls Data with the rest, as usual
//	driver   Leave      makes Expired true; the driver keeps its own input
//
// When the code has finished, the handler stores the answer for the next call of Data, and wakes the connection. A panic or
// runtime.Goexit in such code does not end the connection: the handler answers in Abandoned.

// part is a driver's state for calls about a part of a connection.
type part struct {
	isPart bool     // between EnterPart and Leave
	from   int32    // length of the input consumed at EnterPart
	resume *Conn    // the connection with which a fresh driver begins, or nil
	to     Protocol // whose Data is being called, nil for none; see switch.go
}

// EnterPart is Enter for code about a part of the connection. If the code does not reach Leave soon, another driver gets the
// loop, the connection, the contents of Out and the input from byte consumed on. Then Expired is true, and the handler must
// return without touching the connection or Out. The input stays valid until the handler returns. A driver that is already
// detached keeps the connection, as with Enter. A timeout of EnterFor must not be set.
func (d *Driver) EnterPart(consumed int) {
	if d.detached {
		d.enter()
		return
	}
	d.isPart, d.from = true, int32(consumed)
	d.epoch++
	d.loop.epoch.Store(d.epoch)
	if m := &d.engine.monitor; !m.awake.Load() {
		m.wake()
	}
}

// DetachPart gives up the loop and the connection before an operation that is known to block. It must be called between EnterPart
// and Leave. It has no effect on a detached driver.
func (d *Driver) DetachPart() {
	if d.detached {
		return
	}
	l := d.loop
	l.takeMu.Lock()
	defer l.takeMu.Unlock()
	d.detached, d.taking = true, meter{}
	next := d.epoch + 1
	if !l.epoch.CompareAndSwap(d.epoch, next) {
		return // the monitor was faster
	}
	l.passPart(d, next, false)
}

// passPart gives the loop, and the connection of d, to a fresh driver. epoch is the new, even epoch of the loop. The caller holds
// takeMu, and d is between EnterPart and Leave. collected is as for Scratch.Detached.
func (l *loop) passPart(d *Driver, epoch uint64, collected bool) {
	c, fresh := d.conn, l.e.newDriver(l, epoch)
	held := d.sizeAtBegin - cap(d.Out)
	fresh.Out, d.Out = d.Out, fresh.Out[:0]
	fresh.owned, d.owned = d.owned, fresh.owned[:0]
	c.driver, fresh.resume = nil, c
	c.willSend(muchOutput) // later answers are sent one by one
	l.e.keepRest(c, d.partRest())
	d.chargeBuffers(max(held, 0))
	if p := c.protocol(); p != nil {
		if p.Blocked(d, l.e.now(), collected) {
			d.enter()
		}
	} else if d.Scratch.Detached(collected) {
		d.enter()
	}
	go fresh.run()
}

// keepRest copies rest, the unconsumed input of c, and schedules c to be served soon.
func (e *Engine) keepRest(c *Conn, rest []byte) {
	c.flags |= flagAgain
	if len(rest) > 0 {
		c.in = e.buffers.copyOf(c.Account(), memory.Input, rest)
	}
}

// partRest returns the input of the other parts of the connection, or nil for a call that is not about a part.
func (d *Driver) partRest() []byte {
	if !d.isPart {
		return nil
	}
	return d.in[int(d.from)-d.moved:]
}

// endPart is called by Leave on a driver without a loop. If the call was about a part, the driver has also lost its connection.
func (d *Driver) endPart() {
	if d.isPart {
		d.isPart, d.expired = false, true
	}
}

// resumePart continues the connection that was passed on with the loop. It reports whether d still drives the loop.
func (d *Driver) resumePart() bool {
	c := d.resume
	d.resume = nil
	d.begin(c)
	d.send(c)
	return d.visit(c)
}

// Wake schedules a call of Data with the kept input of the connection, after the peer has read the pending output. It has no
// effect on a closed connection. Safe for concurrent use.
func (c *Conn) Wake() { c.loop.post(message{kind: msgWake, conn: c}) }

// woken handles the message of Wake.
func (l *loop) woken(c *Conn) {
	if c.slot < 0 || !c.noteEvent(0) || c.flags&(flagCloseAfter|flagCloseNow|flagLingering) != 0 {
		return
	}
	c.flags |= flagAgain
	l.serveSoon(c)
}

// A PartJob is a job of a worker for a part of a connection: the action of a stream that is known to block, or that reads its
// body while the body arrives.
type PartJob interface {
	// Prepare is called if the job is the first one of a new worker. It initializes the handler's data in d, the driver of the
	// worker. It runs on the goroutine that submits the job, so it must be quick.
	Prepare(d *Driver)
	// Run does the work on a worker. The driver has neither a loop nor a connection.
	Run(d *Driver)
	// Abandoned is called with the same driver after Run has ended in a panic or in runtime.Goexit.
	Abandoned(d *Driver)
	// Overdue is called instead of Run if the job is not urgent and has waited in line for longer than Config.Limits.QueueTarget. It
	// may be called on any goroutine and must not block.
	Overdue()
}

// A PartScratch is the memory that a worker carries from one PartJob to the next.
type PartScratch interface {
	// Spent reports whether the next job must not use the memory.
	Spent() bool
}

// SubmitPart queues job for a worker; an urgent job precedes others. The job runs at once unless the number of waiting calls has
// reached Config.MaxWorkers.
func (d *Driver) SubmitPart(job PartJob, urgent bool) {
	d.engine.workers.add(task{part: job}, urgent, overload.Returning)
}

// A HeldBody is the unsent answer body of a part. The zero value is empty.
type HeldBody struct {
	e *Engine
	u *bodyUse
}

// HoldBody charges an account for the capacity of b until HeldBody.Release, which must be called before the account is closed. A
// body that several parts or connections hold is charged to their accounts in equal parts.
func (c *Conn) HoldBody(a *memory.Account, b []byte) HeldBody {
	e := c.loop.e
	return HeldBody{e, e.shared.chargeUse(a, b, e.cfg.Budget.Bound())}
}

// Release ends the charge.
func (h HeldBody) Release() {
	if h.u != nil {
		h.e.shared.release(h.u, h.e.cfg.Budget.Bound())
	}
}
