//go:build linux

package engine

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A Driver is what a goroutine needs to serve connections: buffers, scratch memory, and the state of the current call. A handler
// must not use a Driver after the call that the Driver was passed to.
type Driver struct {
	// Out is the slice to which the handler appends its answers. The engine sends it after the call and reuses it.
	Out []byte

	// Scratch is the result of Handler.NewScratch for this driver. A worker has none until it serves a connection.
	Scratch Scratch
	// PartScratch belongs to a Protocol, or on a worker to its PartJobs. A PartJob finds the value that the previous one on the same
	// worker has left, unless that is spent (PartScratch.Spent).
	PartScratch PartScratch

	engine      *Engine
	loop        *loop  // the loop that it drives, or that it drove until it was detached
	conn        *Conn  // the connection that it serves
	epoch       uint64 // the value of loop.epoch while it drives the loop; odd between Enter and Leave
	detached    bool   // the driver has no loop: the loop was taken over or given up, or the driver is a worker
	overdue     bool   // its request has waited too long, see queue.go
	evicting    bool   // the descriptor of its connection is needed, see evict.go
	isWorker    bool
	expired     bool          // the connection was taken away, see timed.go; only for the driver
	permit      permit        // whether its call counts against Config.MaxWorkers, see permits.go; under workers.mu
	leftover    leftover      // the request of the handler in this call of Data
	waited      time.Duration // the time that its request waited in the queue of a saturated loop
	begun       int           // requests begun in this visit, for a connection of parts
	now         int64         // copy of loop.now, since the loop may be lost at any time; for a worker with an adaptive bound: the start of its job
	unix        int64         // copy of loop.unix, for use between Enter and Leave
	owned       []owned
	gather      *gather // made when needed
	timeout             // of handler code, see timed.go
	*parking            // of a call that waits, see blocking.go; nil for a worker that has served no connection
	callBuffers         // of a call, see memory.go
	part                // of a call, see part.go
	watch               // of a call, see watch.go
}

// A Releaser is informed when an owned buffer is no longer needed.
type Releaser interface {
	// Release is called once, on any engine goroutine.
	Release()
}

// leftover decides what happens to the input that a call of Data did not consume.
type leftover uint8

const (
	leftKeep       leftover = iota // keep it until more arrives
	leftAgain                      // pass it again at once
	leftHandOff                    // pass it to a worker
	leftBackground                 // keep it until the call in the background has returned
	leftMore                       // call Data again even if no input is left
	leftLater                      // pass it again when other connections have had their turn
)

// Now returns the time of this turn as monotonic nanoseconds since Config.Start. A detached driver gets the current time.
func (d *Driver) Now() int64 {
	if d.detached {
		return d.engine.now()
	}
	return d.now
}

// Time returns the time of this turn, or the current time once the driver has lost its loop, even if it does not know that yet.
func (d *Driver) Time() time.Time {
	if d.detached || d.loop.epoch.Load() != d.epoch {
		return time.Now()
	}
	return d.engine.deadlineAt(d.now)
}

// Turn is Time as nanoseconds since Config.Start.
func (d *Driver) Turn() int64 {
	if d.detached || d.loop.epoch.Load() != d.epoch {
		return d.engine.now()
	}
	return d.now
}

// Clock returns the current time on the clock of Now.
func (d *Driver) Clock() int64 { return d.engine.now() }

// Arrived returns the time at which the engine learned of the input of this call of Data: the beginning of the turn, or earlier
// on a saturated loop.
func (d *Driver) Arrived() int64 { return d.Now() - int64(d.waited) }

// Loop returns the index of the loop that the driver runs or had before; 0 for workers.
func (d *Driver) Loop() int {
	if d.loop == nil {
		return 0
	}
	return d.loop.number
}

// Unix returns the wall clock of this turn in seconds.
func (d *Driver) Unix() int64 {
	if d.detached {
		return presentUnix()
	}
	return d.unix
}

// presentUnix is a separate function so that Unix is inlined.
func presentUnix() int64 { return time.Now().Unix() }

// Inline reports whether the driver runs a loop. Such a driver must not block outside Enter and Leave. Workers and detached
// drivers may block anywhere.
func (d *Driver) Inline() bool { return !d.detached }

// HandOff requests that a worker goroutine serve the input that this call of Data does not consume. After Data has returned
// and Out has been sent, the worker calls Data with Inline false, even if no input remains. On a driver that is not inline,
// HandOff does the same as Again.
func (d *Driver) HandOff() {
	d.leftover = leftHandOff
	d.conn.flags &^= flagUrgent
}

// HandOffFirst is HandOff for a call that precedes others when all workers are busy.
func (d *Driver) HandOffFirst() {
	d.HandOff()
	if !d.detached {
		d.conn.flags |= flagUrgent
	}
}

// Again requests another call of Data with the input that this one does not consume, without waiting for more input, after
// the output so far is sent. A handler uses it to bound Out when many requests arrive at once.
func (d *Driver) Again() { d.leftover = leftAgain }

// More is Again for a handler that has more to send than it has appended. Data is called again even if no input is left.
func (d *Driver) More() { d.leftover = leftMore }

// Later is Again, except that other connections have their turn first. It is for input that takes long to handle, or that is of
// no use.
func (d *Driver) Later() { d.leftover = leftLater }

// Draining reports whether the engine is shutting down: answers should announce that the connection will be closed.
func (d *Driver) Draining() bool { return d.engine.draining.Load() }

// Spread returns the time, in ns, over which the ends of switched connections (Conn.Switch) should be spread in a drain.
func (d *Driver) Spread() int64 { return d.engine.spread.Load() }

// begin and end enclose all work of a driver for one connection.
func (d *Driver) begin(c *Conn) {
	l := d.loop
	l.current = c
	d.conn, c.driver, d.begun = c, d, 0
	d.now, d.unix = l.now, l.unix
}

// end passes the connection on: to its loop, to a worker, to a handshake, or to be closed. It reports whether d still drives
// the loop.
func (d *Driver) end(c *Conn) bool {
	d.releaseCharge()
	if d.expired {
		d.expired, d.conn = false, nil
		d.dropOutput()
		return false
	}
	if d.leftover == leftBackground {
		return d.moveToBackground(c)
	}
	if c.acct.Load() != nil {
		d.settle(c)
	}
	t := c.secure()
	if t != nil {
		d.endTLS(c, t)
	}
	c.driver, d.conn = nil, nil
	if d.detached {
		d.handBack(c)
		return false
	}
	l := d.loop
	mark := c.mark
	c.served(l.now)
	if d.begun > 0 {
		l.asked(c, d.begun)
	}
	switch {
	case c.over():
		l.finish(c)
	case t != nil && t.phase == tlsHello:
		c.setAway()
		d.engine.handshakes.submit(c)
	case c.flags&flagHandOff != 0:
		urgent, from := c.flags&flagUrgent != 0, l.originOf(mark, l.now-int64(d.waited))
		c.flags &^= flagHandOff | flagUrgent
		c.setAway()
		d.engine.workers.submit(c, urgent, from)
	case c.flags&(flagReadable|flagAgain) != 0 && c.out == nil && !c.rests():
		l.serveSoon(c)
	case d.engine.forced.Load():
		l.close(c)
	case d.engine.draining.Load() && (c.idle() || c.isSilent()) && c.flags&flagLingering == 0:
		l.closeSoon(c)
	default:
		l.refileIfEarlier(c)
	}
	return true
}

// handBack returns c to its loop after the work of a goroutine without a loop. The caller must not use c afterwards.
func (d *Driver) handBack(c *Conn) {
	if c.over() {
		c.askClose()
		return
	}
	look := c.flags&(flagLook|flagReadable|flagPeerDone) != 0
	c.flags &^= flagLook | flagReadable
	c.giveBack(look)
}

// visit serves a connection that the loop owns and that has work. It reports whether d still drives the loop.
func (d *Driver) visit(c *Conn) bool {
	d.begin(c)
	switch {
	case c.out != nil && !d.drain(c):
		// Back pressure: the connection is not read until the peer has read.
	case c.over():
	case c.flags&flagAgain != 0:
		d.serveKept(c)
	case c.flags&flagLingering != 0:
		d.discard(c)
	case c.flags&flagReadable != 0 && c.Notes&Paused == 0:
		d.receive(c)
	}
	return d.end(c)
}

// receive reads once and serves the input together with the input kept so far.
func (d *Driver) receive(c *Conn) {
	if c.awaitsHeader() && !d.readHeader(c) {
		return
	}
	if t := c.secure(); t != nil {
		d.receiveTLS(c, t)
		return
	}
	in := d.loop.readBuf()
	kept := copy(in, c.kept())
	into := d.loop.readSpace(in, kept)
	n, errno := recv(c.fd, into)
	switch {
	case n > 0:
		if kept > 0 {
			d.engine.buffers.put(c.in)
			c.in = nil
		}
		// A short read has emptied the socket; further input will cause a new event. The end of the stream has already caused its
		// event.
		if n < len(into) && c.flags&flagPeerDone == 0 {
			c.flags &^= flagReadable
		}
		d.serve(c, d.takeInput(kept+n))
	case errno == unix.EAGAIN:
		c.flags &^= flagReadable
	case errno != 0:
		c.flags |= flagCloseNow
	default:
		d.receiveEnd(c)
	}
}

// receiveEnd handles the end of the peer's input.
func (d *Driver) receiveEnd(c *Conn) {
	c.flags = c.flags&^flagReadable | flagEOF
	if p := c.protocol(); p != nil {
		p.End(d, c)
	} else {
		d.engine.handler.EOF(d, c, c.kept())
	}
	c.flags |= flagCloseAfter
	d.send(c)
}

// serveKept calls Data with only the kept input.
func (d *Driver) serveKept(c *Conn) {
	c.flags &^= flagAgain
	if c.in == nil {
		d.serve(c, nil)
		return
	}
	d.inBuf, c.in = c.in, nil
	d.serve(c, d.inBuf.b)
}

// VisitTime returns how long, in ns, a call of Data should continue with input that arrived at once, on a driver that is
// inline. After that, other connections have their turn.
func (d *Driver) VisitTime() int64 { return d.loop.visitTime() }

// visitTime returns the time since the beginning of a turn, in ns, until which the loop continues with a connection that has
// sent many requests at once.
func (l *loop) visitTime() int64 {
	if l.saturation.on {
		return pieceTime
	}
	return turnTime
}

// serve passes in to the handler, sends the answers, and keeps the input that was not consumed. Then it releases the buffer of
// in. After a panic the buffer is left to the garbage collector, since other goroutines of the handler may still hold views of
// it.
func (d *Driver) serve(c *Conn, in []byte) {
	d.serveAll(c, in)
	if d.inBuf != nil {
		d.engine.buffers.put(d.inBuf)
		d.inBuf = nil
	}
}

func (d *Driver) serveAll(c *Conn, in []byte) {
	for {
		d.leftover = leftKeep
		d.in, d.moved = in, 0
		d.sizeAtBegin = d.unheld()
		var n int
		p := c.protocol()
		if p == nil {
			n = d.engine.handler.Data(d, c, in)
		} else {
			n = d.dataSwitched(c, p, in)
		}
		in, n = d.in, n-d.moved
		if d.expired {
			invariants.EndLoan(in)
			return
		}
		invariants.EndLoan(in[:n])
		in = in[n:]
		d.send(c)
		if p = c.protocol(); p != nil {
			c.pendedSwitched(p)
		} else if c.out != nil && c.out.bytes > memory.Small {
			d.engine.handler.Pended(d, c.out.bytes)
		}
		if c.flags&(flagCloseAfter|flagCloseNow) != 0 {
			if len(in) > 0 || c.Secure() && !c.hasEnded() {
				c.flags |= flagLinger // with TLS the peer still sends close_notify
			}
			return
		}
		if d.leftover == leftKeep || d.leftover == leftBackground {
			if n == 0 && len(in) >= d.engine.cfg.ReadBuffer && c.Notes&Paused == 0 {
				c.flags |= flagCloseNow
			}
			d.keep(c, in)
			return
		}
		if len(in) == 0 && d.leftover == leftAgain {
			return
		}
		if d.mustWait(c) || d.leftover == leftLater && (!d.detached || p != nil) {
			c.flags |= flagAgain
			d.keep(c, in)
			return
		}
		if d.leftover == leftHandOff && !d.detached {
			c.flags |= flagHandOff
			d.keep(c, in)
			return
		}
	}
}

// mustWait reports whether further requests of c, which have already arrived, must wait for another turn: until the peer has
// received its answers, or until other connections have had their turn.
func (d *Driver) mustWait(c *Conn) bool {
	switch {
	case c.out != nil:
		return true
	case (d.leftover == leftAgain || d.leftover == leftMore) && d.leftUnread(c):
		return true
	}
	return (d.leftover == leftAgain || d.leftover == leftMore) && !d.detached && d.engine.now()-d.now > d.loop.visitTime()
}

// keep stores unconsumed input with the connection.
func (d *Driver) keep(c *Conn, in []byte) {
	if len(in) > 0 {
		if buf := d.inBuf; buf != nil && buf.by != nil && len(in) == len(buf.b) {
			c.in, d.inBuf = buf, nil // the buffer holds exactly this input already
			return
		} else if buf != nil {
			buf.release() // release first, so that two copies are not charged
		}
		c.in = d.engine.buffers.copyOf(c.Account(), memory.Input, in)
		invariants.EndLoan(in)
	}
}

// discard reads and drops the input of a lingering connection.
func (d *Driver) discard(c *Conn) {
	if c.Notes&Paused != 0 {
		if c.flags&flagPeerDone != 0 {
			c.flags |= flagCloseNow
		}
		return
	}
	in := d.loop.readBuf()
	n, errno := recv(c.fd, in)
	switch {
	case n > 0:
		if n < len(in) && c.flags&flagPeerDone == 0 {
			c.flags &^= flagReadable
		}
	case errno == unix.EAGAIN:
		c.flags &^= flagReadable
	default:
		c.flags |= flagCloseNow
	}
}
