//go:build linux

package engine

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// A Driver is a goroutine's licence to serve connections, with the buffers
// and the scratch that go with it. A handler must not keep it beyond the
// call it was given for.
type Driver struct {
	// Out is where the handler appends its answers. The engine sends it after
	// the call and reuses it.
	Out []byte

	// Scratch is what Handler.NewScratch made for this driver. A worker has none until it serves a connection.
	Scratch any
	// PartScratch is a PartJob's to keep, for the next one that the same worker does.
	PartScratch any

	engine   *Engine
	loop     *loop  // the loop it drives, or drove until it was detached
	conn     *Conn  // the connection it is serving
	epoch    uint64 // what loop.epoch is while it drives; odd between Enter and Leave
	detached bool   // it has no loop: taken over, given up, or a worker
	overdue  bool   // what it serves has waited too long, see queue.go
	evicting bool   // its connection's descriptor is needed, see evict.go
	isWorker bool
	expired  bool          // the connection was taken, see timed.go; only for the driver
	place    place         // among those that Config.MaxWorkers bounds, see places.go; under workers.mu
	leftover leftover      // what the handler asked for during this call of Data
	waited   time.Duration // what it serves, in the queue of a saturated loop
	begun    int           // requests of a connection of parts, in its visit
	now      int64         // copies of the loop's, which may be lost at any time; of a worker: when its job began, where the pool adapts its bound
	unix     int64         // between Enter and Leave
	owned    []owned
	gather   *gather // made when it is needed
	timeout          // of handler code, see timed.go
	*parking         // of a call that waits, see blocking.go; nil for a worker that has served no connection
	memory           // of a call, see memory.go
	part             // likewise, see part.go
	watch            // likewise, see watch.go
}

// A Releaser is told when an owned buffer is no longer needed.
type Releaser interface {
	// Release is called once, on any engine goroutine.
	Release()
}

// leftover is what should happen to the input a call of Data left over.
type leftover uint8

const (
	leftKeep       leftover = iota // keep it until more arrives
	leftAgain                      // pass it again at once
	leftHandOff                    // pass it to a worker
	leftBackground                 // keep it until the call has gone on in the background
	leftRoom                       // keep it until there is room for what it will hold
	leftMore                       // call Data again even if no input is left
	leftLater                      // pass it again when others have had their turn
)

// Now returns the time of this turn as monotonic nanoseconds since the
// Config.Start. Detached drivers see the current time.
func (d *Driver) Now() int64 {
	if d.detached {
		return d.engine.now()
	}
	return d.now
}

// Time returns the time of this turn, and the present time once the driver has lost its loop, be it
// that it does not know yet.
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

// Clock reads the clock of which Now is a copy.
func (d *Driver) Clock() int64 { return d.engine.now() }

// Arrived returns when the engine learned of what this call of Data serves: when
// the turn began, or earlier when the loop has more to do than it can.
func (d *Driver) Arrived() int64 { return d.Now() - int64(d.waited) }

// Loop returns the number, from 0 on, of the loop that the driver runs or came
// from; 0 for workers.
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

// presentUnix is apart so that Unix is inlined.
func presentUnix() int64 { return time.Now().Unix() }

// Inline reports whether the driver runs a loop, which must not be held up
// outside Enter and Leave. Workers and detached drivers may block anywhere.
func (d *Driver) Inline() bool { return !d.detached }

// HandOff asks that the input not consumed by this call of Data be served by a
// worker goroutine: after Data returns, and after what is in Out has been
// sent, Data is called there with Inline false, even if no input is left. On a
// driver that is not inline it is the same as Again.
func (d *Driver) HandOff() {
	d.leftover = leftHandOff
	d.conn.flags &^= flagUrgent
}

// HandOffFirst is HandOff for what goes before others when all workers are busy.
func (d *Driver) HandOffFirst() {
	d.HandOff()
	if !d.detached {
		d.conn.flags |= flagUrgent
	}
}

// Again asks for another call of Data with the input not consumed by this one,
// without waiting for more to arrive, once the output so far is sent. A
// handler uses it to bound Out when many requests arrive at once.
func (d *Driver) Again() { d.leftover = leftAgain }

// More is Again for a handler that has more to send than it has appended, with input or without.
func (d *Driver) More() { d.leftover = leftMore }

// Later is Again for when others have had their turn: what came takes the server long, or serves nobody.
func (d *Driver) Later() { d.leftover = leftLater }

// Draining reports whether the engine is shutting down: answers should say
// that the connection will be closed.
func (d *Driver) Draining() bool { return d.engine.draining.Load() }

// begin and end enclose everything a driver does for one connection.
func (d *Driver) begin(c *Conn) {
	l := d.loop
	l.current = c
	d.conn, c.driver, d.begun = c, d, 0
	d.now, d.unix = l.now, l.unix
}

// end decides what becomes of the connection. It reports whether d still
// drives the loop.
func (d *Driver) end(c *Conn) bool {
	d.releaseLent()
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
		d.letGo(c)
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
		d.engine.shakes.submit(c)
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

// letGo ends what a goroutine without a loop does for a connection. Nothing
// of c may be touched after it.
func (d *Driver) letGo(c *Conn) {
	if c.over() {
		c.askClose()
		return
	}
	look := c.flags&(flagLook|flagReadable|flagPeerDone) != 0
	c.flags &^= flagLook | flagReadable
	c.giveBack(look)
}

// visit serves a connection that is the loop's and has something to do. It
// reports whether d still drives the loop.
func (d *Driver) visit(c *Conn) bool {
	d.begin(c)
	switch {
	case c.out != nil && !d.drain(c):
		// Back pressure: nothing is read until the peer has read.
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

// receive reads once and serves what came together with the input kept so far.
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
	into := d.loop.modest(in, kept)
	n, errno := recv(c.fd, into)
	switch {
	case n > 0:
		if kept > 0 {
			d.engine.buffers.put(c.in)
			c.in = nil
		}
		// A short read has emptied the socket; more will make a new edge. The end of
		// the stream has made its edge already.
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

// receiveEnd is for the end of what the peer sends.
func (d *Driver) receiveEnd(c *Conn) {
	c.flags = c.flags&^flagReadable | flagEOF
	d.engine.handler.EOF(d, c, c.kept())
	c.flags |= flagCloseAfter
	d.send(c)
}

// serveKept calls Data with kept input alone.
func (d *Driver) serveKept(c *Conn) {
	c.flags &^= flagAgain
	if c.in == nil {
		d.serve(c, nil)
		return
	}
	d.inBuf, c.in = c.in, nil
	d.serve(c, d.inBuf.b)
}

// VisitTime is how long a call of Data is to go on with what has come at once, in ns, on a driver that is inline:
// then others have their turn.
func (d *Driver) VisitTime() int64 { return d.loop.visitTime() }

// visitTime is how long into a turn, in ns, the loop goes on with a connection that has
// sent many requests at once.
func (l *loop) visitTime() int64 {
	if l.saturation.on {
		return pieceTime
	}
	return turnTime
}

// serve passes in to the handler, sends the answers, and keeps the rest. Then it
// lets go of what in lies in; after a panic the collector does, since code that the
// handler left behind may hold views.
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
		d.lends = d.unheld()
		n := d.engine.handler.Data(d, c, in)
		in, n = d.in, n-d.moved
		if d.expired {
			invariants.EndLoan(in)
			return
		}
		invariants.EndLoan(in[:n])
		in = in[n:]
		d.send(c)
		if c.Notes&asked != 0 && d.leftover != leftRoom {
			c.asksNoMore()
		}
		if c.out != nil {
			c.endProbe()
		}
		if c.out != nil && c.out.bytes > littleOutput && c.Notes&Parts == 0 {
			d.engine.handler.Pended(d, c.out.bytes)
		}
		if c.flags&(flagCloseAfter|flagCloseNow) != 0 {
			if len(in) > 0 || c.Secure() && !c.hasEnded() {
				c.flags |= flagLinger // by TLS more is to come: close_notify
			}
			return
		}
		if d.leftover == leftKeep || d.leftover == leftBackground {
			if n == 0 && len(in) >= d.engine.cfg.ReadBuffer {
				c.flags |= flagCloseNow
			}
			d.keep(c, in)
			return
		}
		if len(in) == 0 && d.leftover == leftAgain {
			return
		}
		if d.leftover == leftRoom {
			if c.flags&flagPeerDone != 0 && c.Lost(-1) {
				c.flags |= flagCloseNow // and no event will say so again
				return
			}
			c.flags |= flagAgain | flagAwaitsRoom
			d.keep(c, in)
			return
		}
		if d.mustWait(c) || d.leftover == leftLater && !d.detached {
			c.flags |= flagAgain
			d.keep(c, in)
			return
		}
		if d.leftover == leftHandOff && !d.detached {
			c.flags |= flagHandOff
			d.keepFor(c, in, admission.Queued)
			return
		}
	}
}

// mustWait reports whether c's further requests, which are here already, are for another
// turn: until its peer has taken its answers, or others have had theirs.
func (d *Driver) mustWait(c *Conn) bool {
	switch {
	case c.out != nil:
		return true
	case (d.leftover == leftAgain || d.leftover == leftMore) && d.leftUnread(c):
		return true
	}
	return (d.leftover == leftAgain || d.leftover == leftMore) && !d.detached && d.engine.now()-d.now > d.loop.visitTime()
}

// keep stores input that was not consumed with the connection.
func (d *Driver) keep(c *Conn, in []byte) { d.keepFor(c, in, admission.Input) }

// keepFor is keep for a use of the budget.
func (d *Driver) keepFor(c *Conn, in []byte, use admission.Use) {
	if len(in) > 0 {
		if buf := d.inBuf; buf != nil && buf.by != nil && len(in) == len(buf.b) && use == buf.use {
			c.in, d.inBuf = buf, nil // all of it
			return
		} else if buf != nil {
			buf.release() // one of the two goes back at once
		}
		c.in = d.engine.buffers.copyOf(c.Account(), use, in)
		invariants.EndLoan(in)
	}
}

// discard reads and forgets what a lingering connection still receives.
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
