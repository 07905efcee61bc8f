//go:build linux

package engine

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/overload"
)

// A call of the handler may be about one part of a connection, such as one of many
// streams, and the others are not to wait for it. Code between EnterPart and Leave that
// blocks loses not only its loop but its connection, too:
//
//	driver   EnterPart  in: │ consumed │ rest │   Out: answers so far
//	monitor             takes the loop; the rest of the input is copied, Out moves
//	fresh               sends Out, and calls Data with the rest, as if nothing were
//	driver   Leave      finds that it is Expired; its input is still its own
//
// When the code is done, the handler leaves its answer where the next call of Data
// finds it, and has the connection woken. A panic, or runtime.Goexit, in such code is the
// handler's to answer, in Abandoned, and does not end the connection.

// part is a driver's part in this.
type part struct {
	isPart bool  // between EnterPart and Leave
	from   int32 // how much of the input is consumed then
	resume *Conn // what a fresh driver begins with, nil for nothing
}

// EnterPart is Enter for code that is about a part of the connection. If it does not reach
// Leave soon, the loop and the connection go to another driver, which gets what is in Out
// and the input from byte consumed on; then Expired is true, and the handler must return
// without touching the connection or Out. The input stays valid until it returns.
// A driver that is detached already keeps the connection, as with Enter. There must be no limit.
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

// DetachPart gives up loop and connection now, before an operation known to block. It is
// called between EnterPart and Leave, and does nothing if the driver is detached already.
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
	l.passPart(d, next)
}

// passPart gives the loop, whose epoch is now the given even one, to a fresh driver, with
// the connection of d. takeMu is held; d is between EnterPart and Leave.
func (l *loop) passPart(d *Driver, epoch uint64) {
	c, fresh := d.conn, l.e.newDriver(l, epoch)
	held := d.lends - cap(d.Out)
	fresh.Out, d.Out = d.Out, fresh.Out[:0]
	fresh.owned, d.owned = d.owned, fresh.owned[:0]
	c.driver, fresh.resume = nil, c
	c.willSend(muchOutput) // its answers leave one by one from now on
	l.e.keepRest(c, d.partRest())
	d.lend(max(held, 0))
	if l.e.handler.Detached(d.Scratch) {
		d.enter()
	}
	go fresh.run()
}

// keepRest has c served soon with a copy of what is left of its input.
func (e *Engine) keepRest(c *Conn, rest []byte) {
	c.flags |= flagAgain
	if len(rest) > 0 {
		c.in = e.buffers.copyOf(c.Account(), admission.Input, rest)
	}
}

// partRest returns the input that the other parts of the connection are in; nil for a call
// that is not about a part.
func (d *Driver) partRest() []byte {
	if !d.isPart {
		return nil
	}
	return d.in[int(d.from)-d.moved:]
}

// endPart is Leave's part: a driver that has lost its loop has lost its connection.
func (d *Driver) endPart() {
	if d.isPart {
		d.isPart, d.expired = false, true
	}
}

// resumePart goes on with the connection that came along with the loop. It reports whether
// d still drives the loop.
func (d *Driver) resumePart() bool {
	c := d.resume
	d.resume = nil
	d.begin(c)
	d.send(c)
	return d.visit(c)
}

// Wake has Data called for the connection, with what input there is, when its turn comes:
// not before its peer has taken the output that is pending. It does nothing when the
// connection is closed. Any goroutine may call it.
func (c *Conn) Wake() { c.loop.post(message{kind: msgWake, conn: c}) }

// woken is the loop's answer to it.
func (l *loop) woken(c *Conn) {
	if c.slot < 0 || !c.noteEvent(0) || c.flags&(flagCloseAfter|flagCloseNow|flagLingering) != 0 {
		return
	}
	c.flags |= flagAgain
	l.serveSoon(c)
}

// A PartJob is work for a part of a connection that has no goroutine: the action of a stream
// that is known to block, or that reads its body as it comes.
type PartJob interface {
	// Prepare makes what a fresh worker's driver carries for its jobs, before the first one, which is this. It is called by
	// who submits it, and must be quick.
	Prepare(d *Driver)
	// Run does it, on a worker, with a driver that has neither a loop nor a connection.
	Run(d *Driver)
	// Abandoned is called when Run has ended in a panic or in runtime.Goexit, with the same driver.
	Abandoned(d *Driver)
	// Overdue is called instead of Run, on any goroutine, which must not be held up, for a job that
	// has waited in line for longer than Config.QueueTarget.
	Overdue()
}

// SubmitPart has job done by a worker, before others if it is urgent: at once or, where as many
// calls wait as Config.MaxWorkers allows, in its turn.
func (d *Driver) SubmitPart(job PartJob, urgent bool) {
	d.engine.workers.add(task{part: job}, urgent, overload.Returning)
}

// A HeldBody is what a part holds of an answer that its peer has not let out yet. The zero
// value holds nothing.
type HeldBody struct {
	e *Engine
	u *bodyUse
}

// HoldBody charges an account for b, with its capacity, until Release, which must come before the account is closed. A body that
// several parts or connections hold is charged to them in equal parts.
func (c *Conn) HoldBody(a *admission.Account, b []byte) HeldBody {
	e := c.loop.e
	return HeldBody{e, e.shared.take(a, b, e.cfg.Budget.Bound())}
}

// Release ends the charge.
func (h HeldBody) Release() {
	if h.u != nil {
		h.e.shared.release(h.u, h.e.cfg.Budget.Bound())
	}
}
