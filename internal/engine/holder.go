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
//	                   each a part
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
		if c.acct.Load() == a && a.Ending() { // not the account of an earlier request, which has been refused
			c.fireHangup()
		}
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

// sharedBodies are the owned buffers that are pending, by where they lie. A body that the program made once, or that lies in a
// cache, may be pending for many accounts at once. It lies in memory once, and is charged to all of them in equal parts: so what it
// takes is in the budget, and whoever is evicted leaves its part to the others. A crowd that takes one body has small parts, which
// nobody is evicted for.
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

// sharedBody is a body that is pending for n users. Invariant: parts ≤ n ≤ most, so the parts of all make up what is held, and
// at most a sixth more.
type sharedBody struct {
	key         bodyKey
	held        int64
	users       *bodyUse // a list
	n           int
	parts, most int
	part        int64 // what each user is charged
}

// bodyUse is that a body is pending for an account.
type bodyUse struct {
	body       *sharedBody
	account    *admission.Account
	charged    int64
	prev, next *bodyUse
}

// take notes that b is pending for an account, too, and charges it.
func (s *sharedBodies) take(a *admission.Account, b []byte, bound int64) *bodyUse {
	key := bodyKey{&b[0], len(b)}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.by[key]
	if x == nil {
		if s.by == nil {
			s.by = make(map[bodyKey]*sharedBody)
		}
		x = &sharedBody{key: key, held: int64(cap(b))}
		s.by[key] = x
	}
	u := &bodyUse{body: x, account: a, next: x.users}
	if u.next != nil {
		u.next.prev = u
	}
	x.users = u
	x.n++
	x.divide(bound)
	u.charge(x.part)
	return u
}

// release notes that one of its users has sent it, or never will.
func (s *sharedBodies) release(u *bodyUse, bound int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := u.body
	if u.next != nil {
		u.next.prev = u.prev
	}
	if u.prev != nil {
		u.prev.next = u.next
	} else {
		x.users = u.next
	}
	u.charge(0)
	if x.n--; x.n == 0 {
		delete(s.by, x.key)
		return
	}
	x.divide(bound)
}

// divide changes the parts when there are no longer about as many users as before. A body that is larger than the budget and has
// several users is the program's for certain, since no cache has room for it: it is not charged but for a byte, by which its
// users' accounts stay open.
func (x *sharedBody) divide(bound int64) {
	if x.parts <= x.n && x.n <= x.most {
		return
	}
	x.parts, x.most = x.n-x.n/16, x.n+x.n/16
	x.part = max((x.held+int64(x.parts)-1)/int64(x.parts), 1)
	if x.n > 1 && bound > 0 && x.held > bound {
		x.part = 1
	}
	for u := x.users; u != nil; u = u.next {
		if u.charged > 0 { // else it is about to be
			u.charge(x.part)
		}
	}
}

// charge corrects what the account is charged.
func (u *bodyUse) charge(part int64) {
	switch by := part - u.charged; {
	case by > 0:
		u.account.Force(admission.Output, by)
	case by < 0:
		u.account.Release(admission.Output, -by)
	}
	u.charged = part
}
