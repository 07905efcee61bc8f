//go:build linux

package engine

import (
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// Whatever a peer makes the engine or its handler hold is charged to an account of its
// connection, see admission.Holders, which decides who is ended when there is no room: no
// connection is read less, accepted later or answered otherwise because others hold much.
//
//	holds              charged                                        ended by
//	kept input         the buffer's capacity                          Handler.Refused
//	a request begun    what the handler charges (Conn.Account)        Handler.Refused
//	pending output     what is unsent; one that several are sent: to  closing it
//	                   nobody, since ending one of them frees nothing
//	away, it reads     what the handler charges                       Read fails: ErrNoRoom
//	away, it writes    pending output                                 Write fails
//
// A connection opens its account when it first holds something and closes it when it holds
// nothing, so that ordinary requests, which hold nothing after their turn, have none.

// Grouped is what a Conn.Proto may be whose parts have accounts of their own, with which that of the
// connection is bounded together.
type Grouped interface{ Group() *admission.Group }

// Account returns the account of the connection, to which the handler charges what it
// holds for it. It must be given back before Handler.Closed returns, or by code that was
// late when that ends.
func (c *Conn) Account() *admission.Account {
	a := c.acct.Load()
	if a == nil {
		a = c.loop.e.cfg.Holders.Open(c, c.loop.e.source(c.peer.addr()))
		if p, ok := c.Proto.(Grouped); ok {
			a.Join(p.Group())
		}
		c.acct.Store(a)
	}
	return a
}

// Moved notes that the peer has sent n bytes of what the handler waits for, of which so
// many are left (-1: unknown): by that its account is judged.
func (c *Conn) Moved(n, left int64) {
	if a := c.acct.Load(); a != nil {
		a.Moved(n, left)
	}
}

// Working says whether the peer has done its part for now, as when its body is here.
func (c *Conn) Working(working bool) {
	if a := c.acct.Load(); a != nil {
		a.Working(working)
	}
}

// ProbeBlocks notes that the action of the request blocks, which may have begun though there is no room for a large answer.
func (c *Conn) ProbeBlocks() {
	if a := c.acct.Load(); a != nil {
		a.ProbeBlocks()
	}
}

// Met returns the cap because of which the connection got no memory, or is ended.
func (c *Conn) Met() admission.Cap {
	if a := c.acct.Load(); a != nil {
		return a.Met()
	}
	return admission.NoCap
}

// End is called by admission.Holders, on any goroutine.
func (c *Conn) End(a *admission.Account) { c.loop.post(message{kind: msgEnd, conn: c, account: a}) }

// noteEnded counts, and logs now and then, that the connection is refused or cut off now to make room.
func (c *Conn) noteEnded(a *admission.Account) {
	e := c.loop.e
	if !a.CountEnd() {
		return
	}
	if a.Met().Capped() {
		if n, due := e.cfg.Shed.Note(admission.MemoryCap); due {
			e.cfg.Logger.Warn("engine: one connection or address holds as much memory as it may: those are refused or cut off who hold most",
				"latest", c.RemoteAddr(), "held", a.Held(), "count", n)
		}
	} else if n, due := e.cfg.Shed.Note(admission.LargestHolder); due {
		e.cfg.Logger.Warn("engine: the "+e.cfg.Budget.String()+" is used up: those who hold most for longest are refused or cut off",
			"latest", c.RemoteAddr(), "held", a.Held(), "fair", e.cfg.Holders.Fair(), "count", n)
	}
}

// ended reports whether the connection is being ended to make room: its caller cuts it off then, which is counted. Its
// goroutine, when it is away, finds that out as soon as it would wait.
func (c *Conn) ended() bool {
	a := c.acct.Load()
	if a == nil || !a.Ending() {
		return false
	}
	c.noteEnded(a)
	return true
}

// endHolder ends c to make room. It reports whether d still drives the loop.
func (l *loop) endHolder(d *Driver, c *Conn, a *admission.Account) bool {
	if c.slot < 0 {
		return true // it is closed
	}
	if !c.noteEvent(0) {
		c.fireHangup()
		return true
	}
	if c.acct.Load() != a || a.Spare() {
		return true // it has let go by itself
	}
	c.noteEnded(a)
	d.begin(c)
	if c.out != nil && c.out.bytes > 0 {
		c.flags |= flagCloseNow
	} else {
		d.refuse(c)
	}
	return d.end(c)
}

// refuse has the handler refuse what c has waiting, and closes c after that.
func (d *Driver) refuse(c *Conn) {
	if c.greeting() {
		c.flags |= flagCloseNow
		return
	}
	d.engine.handler.Refused(d, c, c.kept())
	if c.Notes&asked != 0 {
		c.asksNoMore()
	}
	c.flags = c.flags&^(flagAgain|flagHandOff|flagAwaitsRoom) | flagCloseAfter | flagLinger
	d.send(c)
	d.engine.buffers.put(c.in)
	c.in = nil
}

// settle closes the account of a connection that holds nothing any more. One that was
// ended while it was away is closed.
func (d *Driver) settle(c *Conn) {
	a := c.acct.Load()
	switch {
	case a.CloseIdle():
		c.acct.Store(nil)
	case !d.detached || !a.Ending() || a.Spare() || c.over():
	case c.out != nil:
		c.noteEnded(a)
		c.flags |= flagCloseNow
	default:
		c.loop.post(message{kind: msgEnd, conn: c, account: a}) // the loop refuses what is kept
	}
}

// sharedBodies are the owned buffers that are pending, by where they lie: an answer that
// the application made once and sends to many is held by none of them.
type sharedBodies struct {
	mu sync.Mutex
	by map[bodyKey]*sharedBody
	n  atomic.Int64 // connections with pending output
}

// bodyKey is a piece of memory.
type bodyKey struct {
	first  *byte
	length int
}

// sharedBody is a body that is pending. It is charged to the connection that it was first
// pending for, and when there is another, to the budget alone.
type sharedBody struct {
	key    bodyKey
	held   int64
	users  int
	charge *admission.Account // nil: the budget alone
}

// take notes that b is pending for an account, too, and charges it.
func (s *sharedBodies) take(a *admission.Account, b []byte) *sharedBody {
	key := bodyKey{&b[0], len(b)}
	s.mu.Lock()
	x := s.by[key]
	first := x == nil
	if first {
		if s.by == nil {
			s.by = make(map[bodyKey]*sharedBody)
		}
		x = &sharedBody{key: key, held: int64(cap(b)), charge: a}
		s.by[key] = x
	}
	x.users++
	charge := x.charge
	if !first {
		x.charge = nil
	}
	s.mu.Unlock()
	switch {
	case first:
		charge.Force(admission.Output, x.held)
	case charge != nil:
		charge.Disown(x.held)
	}
	return x
}

// release notes that one of its users has sent it, or never will.
func (s *sharedBodies) release(e *Engine, x *sharedBody) {
	s.mu.Lock()
	x.users--
	last := x.users == 0
	if last {
		delete(s.by, x.key)
	}
	s.mu.Unlock()
	switch {
	case !last:
	case x.charge != nil:
		x.charge.Release(admission.Output, x.held)
	default:
		e.cfg.Budget.Release(admission.Output, x.held)
	}
}
