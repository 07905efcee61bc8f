//go:build linux

package engine

import (
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// All memory that a peer makes the engine or its handler hold is charged to an account of its connection. memory.Budget decides
// which account is evicted when there is no room. A large holder has no other effect on other connections: the engine reads,
// accepts and answers them as before.
//
//	memory             charged                                        eviction
//	kept input         the buffer's capacity                          Handler.Refused
//	a begun request    by the handler (Conn.Account)                  Handler.Refused
//	pending output     the unsent bytes; a body sent to several       the connection is closed
//	                   connections: a part to each
//	reading in a call  by the handler                                 Read fails: ErrNoRoom
//	writing in a call  pending output                                 Write fails: ErrNoRoom
//
// A connection opens its account when it first holds memory and closes the account when it holds none. So connections with
// ordinary requests, which hold no memory after their turn, have no account.

// Account returns the account of the connection, to which the handler charges the memory that it holds for the connection. The
// handler must release its charges before Handler.Closed returns. Late code (timed.go) must release its charges when it ends.
func (c *Conn) Account() *memory.Account {
	a := c.acct.Load()
	if a == nil {
		a = c.loop.e.cfg.Budget.Open(c, c.loop.e.source(c.peer.addr()))
		if c.Proto != nil {
			if parts := c.Proto.AccountSet(); parts != nil {
				a.Join(parts)
			}
		}
		c.acct.Store(a)
	}
	return a
}

// ReleaseReservation releases the unused rest of a reservation for output. It is for an answer that lasts long: its output is
// charged when it is produced. Only the owner of the connection may call it.
func (c *Conn) ReleaseReservation() {
	if a := c.acct.Load(); a != nil {
		a.ReleaseReservation()
	}
}

// Progress records that the peer has sent n bytes of its input or has received n bytes of its output, and how many are left (-1:
// unknown). The cost of the account is estimated from these numbers.
func (c *Conn) Progress(n, left int64) {
	if a := c.acct.Load(); a != nil {
		a.Progress(n, left)
	}
}

// SetWorking records whether the peer has done its part for now, for example when its body has arrived.
func (c *Conn) SetWorking(working bool) {
	if a := c.acct.Load(); a != nil {
		a.SetWorking(working)
	}
}

// Met returns the cap because of which memory was refused to the connection, or the connection was evicted.
func (c *Conn) Met() memory.Cap {
	if a := c.acct.Load(); a != nil {
		return a.Met()
	}
	return memory.NoCap
}

// End implements memory.Holder. It may be called on any goroutine.
func (c *Conn) End(a *memory.Account) {
	c.loop.post(message{kind: msgEnd, conn: c, account: a})
	c.loop.evictions.Store(true)
}

// noteEnded counts the eviction of the connection, and logs some of these events.
func (c *Conn) noteEnded(a *memory.Account) {
	e := c.loop.e
	if !a.CountEnd() {
		return
	}
	if a.Met().Capped() {
		if n, due := e.cfg.Shed.Note(admission.MemoryCap); due {
			e.cfg.Logger.Warn("engine: a connection or an address is at its memory limit: the clients that hold the most memory are refused or cut off",
				"latest", c.RemoteAddr(), "held", a.Held(), "count", n)
		}
	} else if n, due := e.cfg.Shed.Note(admission.LargestHolder); due {
		e.cfg.Logger.Warn("engine: the "+e.cfg.Budget.String()+
			" is used up: the clients that hold the most memory for the longest time are refused or cut off",
			"latest", c.RemoteAddr(), "held", a.Held(), "small", memory.Small, "count", n)
	}
}

// ended reports whether the connection is evicted, and counts the eviction. The caller then ends the connection. The owner of an
// away connection calls ended before it waits.
func (c *Conn) ended() bool {
	a := c.acct.Load()
	if a == nil || !a.Evicted() {
		return false
	}
	c.noteEnded(a)
	return true
}

// endHolder evicts c, whose account is a. It reports whether d still drives the loop.
func (l *loop) endHolder(d *Driver, c *Conn, a *memory.Account) bool {
	if c.slot < 0 {
		return true // the connection is closed
	}
	if !c.noteEvent(0) {
		set := c.hangup.h.Load()
		if c.acct.Load() == a && a.Evicted() { // not the account of an earlier request, which has been refused
			c.hangup.interrupt(set) // the connection may still be spared, and serve more requests
		}
		return true
	}
	if c.acct.Load() != a || a.Spare() {
		return true // the connection has released its memory before the eviction
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

// refuse makes the handler refuse the waiting requests of c, and closes c afterwards.
func (d *Driver) refuse(c *Conn) {
	if c.greeting() {
		c.flags |= flagCloseNow
		return
	}
	if p := c.protocol(); p != nil {
		p.Evicted(d, c)
	} else {
		d.engine.handler.Refused(d, c, c.kept())
	}
	c.flags = c.flags&^(flagAgain|flagHandOff) | flagCloseAfter | flagLinger
	d.send(c)
	d.engine.buffers.put(c.in)
	c.in = nil
}

// settle closes the account of a connection that holds no memory any more. If the connection was evicted while it was away,
// settle begins its end.
func (d *Driver) settle(c *Conn) {
	a := c.acct.Load()
	switch {
	case a.CloseIdle():
		c.acct.Store(nil)
	case !d.detached || !a.Evicted() || a.Spare() || c.over():
	case c.out != nil:
		c.noteEnded(a)
		c.flags |= flagCloseNow
	default:
		c.loop.post(message{kind: msgEnd, conn: c, account: a}) // the loop refuses the kept input
	}
}

// sharedBodies has the owned buffers that are pending, by their address. A body that the program made once, or that is in a
// cache, may be pending for many accounts at once. Since the body is in memory only once, it is charged to these accounts in
// equal parts. When an account is evicted, its part is charged to the others. With many users the parts are small, and no account
// is evicted because of them.
type sharedBodies struct {
	mu sync.Mutex
	by map[bodyKey]*sharedBody
	n  atomic.Int64 // connections with pending output
}

// bodyKey identifies a range of memory.
type bodyKey struct {
	first  *byte
	length int
}

// sharedBody is a body that is pending for n users. Invariant: parts ≤ n ≤ most, so the sum of all parts is at least held,
// and at most a sixth more.
type sharedBody struct {
	key         bodyKey
	held        int64
	users       *bodyUse // the first of a linked list
	n           int
	parts, most int
	part        int64 // the charge of each user
}

// bodyUse records that a body is pending for an account.
type bodyUse struct {
	body       *sharedBody
	account    *memory.Account
	charged    int64
	prev, next *bodyUse
}

// chargeUse records that b is pending for another account, and charges that account its part.
func (s *sharedBodies) chargeUse(a *memory.Account, b []byte, bound int64) *bodyUse {
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

// release records that one of the users has sent the body, or will never send it.
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

// divide changes the parts when the number of users has changed enough. A body with several users that is larger than the budget
// certainly belongs to the program, since no cache has room for it. Each of its users is charged one byte only, which keeps the
// account of the user open.
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
		if u.charged > 0 { // otherwise chargeUse is about to charge it
			u.charge(x.part)
		}
	}
}

// charge corrects the charge of the account.
func (u *bodyUse) charge(part int64) {
	switch by := part - u.charged; {
	case by > 0:
		u.account.Force(memory.Output, by)
	case by < 0:
		u.account.Release(memory.Output, -by)
	}
	u.charged = part
}
