//go:build linux

package loophttp

import (
	"sync"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// An unfinished is a request whose head or small body is incomplete. It belongs to its connection, and its memory is charged to the
// budget until release. While the head is incomplete, the engine stores the bytes of the head.
type unfinished struct {
	head     http1.Head
	complete bool   // the head is complete and views raw
	raw      []byte // the bytes of the head
	chunked  http1.Chunked
	body     []byte // the decoded part of the body
	pace     exchange.BodyPace
	since    int64 // when the head became complete, on the engine's clock
	judged   int64 // last update of pace

	handler *handler
	held    int // bytes charged to by
	by      *memory.Account

	transferred bool // held does not include body any more, see transfer
}

// AccountSet implements [engine.State]: a request of HTTP/1.1 has no account apart from the one of its connection.
func (u *unfinished) AccountSet() *memory.AccountSet { return nil }

var unfinisheds = sync.Pool{New: func() any { return new(unfinished) }}

const (
	// keptUnfinished is the maximum capacity, in bytes, of each buffer of a pooled unfinished.
	keptUnfinished = 16 << 10

	// bareUnfinished is the charge for an unfinished without its buffers, in bytes: the struct, and room for a dozen header
	// fields.
	bareUnfinished = 1 << 10

	// maxBodies is the maximum number of free buffers of smallBody bytes, for bodies that exceed keptUnfinished. Together they
	// may have 1/bodyShare of the budget.
	maxBodies = 64
	bodyShare = 16
)

// newUnfinished returns an unfinished from the pool for a request that has begun. Its memory is charged even if the budget is used
// up, because the bytes have been received. The engine makes room afterwards.
func (x *wire) newUnfinished() *unfinished {
	u := unfinisheds.Get().(*unfinished)
	u.handler, u.by = x.handler, x.Conn.Account()
	u.hold(bareUnfinished + cap(u.raw) + cap(u.body))
	return u
}

func (u *unfinished) hold(n int) {
	u.held += n
	u.by.Force(memory.Input, int64(n))
}

// setRaw stores the bytes of the complete head.
func (u *unfinished) setRaw(raw []byte) {
	before := cap(u.raw)
	u.raw = append(u.raw[:0], raw...)
	u.hold(cap(u.raw) - before)
}

// addBody appends a piece of the body. It allocates memory for the received bytes, not for the announced length.
func (u *unfinished) addBody(piece []byte) {
	before := cap(u.body)
	if n := len(u.body) + len(piece); n > before && n > keptUnfinished && n <= smallBody {
		room, kept := u.handler.bodies.Take()
		if !kept {
			room = make([]byte, 0, smallBody)
		}
		u.body = append(room, u.body...)
	}
	u.body = append(u.body, piece...)
	if grown := cap(u.body) - before; grown > 0 {
		u.hold(grown)
	}
}

// left returns the number of missing bytes of the body, -1 if it is unknown.
func (u *unfinished) left() int64 {
	if u.head.Chunked {
		return -1
	}
	return u.head.ContentLength - int64(len(u.body))
}

// Release returns u to the pool after the engine has sent a response that is stored in its body.
func (u *unfinished) Release() { u.release() }

func (u *unfinished) release() {
	u.head.Reset()
	u.complete, u.transferred = false, false
	u.letBody()
	u.raw, u.body = keep(u.raw), keep(u.body)
	u.unhold()
	u.handler = nil
	unfinisheds.Put(u)
}

// transfer turns the charge for the gathered part of the body into a reservation on a. The action copies that part to its own memory
// and charges the copy there, so the body is not charged twice. See letBody.
func (u *unfinished) transfer(a *memory.Account) {
	if cap(u.body) == smallBody && !u.transferred {
		a.ReserveForOutput(memory.Input, smallBody)
		u.held -= smallBody
		u.transferred = true
	}
}

// letBody returns the body's buffer to the free list.
func (u *unfinished) letBody() {
	if cap(u.body) == smallBody {
		invariants.EndLoan(u.body)
		u.handler.bodies.Keep(u.body[:0], u.handler.keptBodies)
		u.body = nil
	}
}

// letGathered releases the gathered part of the body after it was read, if its charge was transferred.
func (x *wire) letGathered() {
	if x.gathered != nil && x.gathered.transferred {
		x.whole.Bytes = nil
		x.gathered.letBody()
	}
}

func (u *unfinished) unhold() {
	if u.by != nil {
		u.by.Release(memory.Input, int64(u.held))
	}
	u.held, u.by = 0, nil
}

// abandon returns the charges of the exchange to the budget and leaves its memory to the garbage collector, because an action
// may have passed the memory to other goroutines.
func (x *wire) abandon() {
	x.endEarly()
	x.Call.Abandon()
	if x.gathered != nil {
		x.gathered.unhold()
	}
	x.LeaveConn()
}

// Account returns the account of the connection, or nil if the action is late: the connection may then belong to another
// driver.
func (x *wire) Account() *memory.Account {
	if !x.claim() {
		return nil
	}
	defer x.unclaim()
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.Conn.Account()
	if x.gathered != nil && x.body != received {
		x.gathered.transfer(a)
		if len(x.stream.early) == 0 {
			x.letGathered() // the gathered part was read before
		}
	}
	return a.Lend()
}

// MayWait releases the loop and the read buffer, and yields the action's permit among MaxConcurrent to other actions.
func (x *wire) MayWait() {
	if x.claim() {
		if !x.StdReads() {
			x.moveInput()
		}
		x.d.Detach()
		x.mu.Lock()
		x.Conn.TrimInput()
		x.mu.Unlock()
		x.unclaim()
	}
	x.d.YieldPermit()
}

// Lost reports whether the client has gone. left is the number of unread bytes of the body.
func (x *wire) Lost(left int64) bool {
	if !x.claim() {
		return true
	}
	defer x.unclaim()
	if x.body == received {
		return x.Conn.Lost(left)
	}
	return x.stream.lost(left)
}

// Waited regains the permit that MayWait has yielded.
func (x *wire) Waited() { x.d.RegainPermit() }

// keep empties a buffer for the pool, or drops a large one.
func keep(b []byte) []byte {
	invariants.EndLoan(b)
	if cap(b) > keptUnfinished {
		return nil
	}
	return b[:0]
}
