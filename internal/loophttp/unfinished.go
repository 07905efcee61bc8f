//go:build linux

package loophttp

import (
	"sync"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// An unfinished is a request of which more must come: its head, or the rest of
// a small body. It belongs to its connection, and its memory is held in the budget
// until release. While its head is incomplete, the engine keeps the bytes.
type unfinished struct {
	head     http1.Head
	complete bool   // the head is complete, and views raw
	raw      []byte // the head's bytes
	chunked  http1.Chunked
	body     []byte // what of the body has come, decoded
	pace     exchange.BodyPace
	since    int64 // when its head was complete, on the engine's clock
	judged   int64 // when pace was brought up to date

	handler *handler
	held    int // bytes of the budget, charged to
	by      *admission.Account

	transferred bool // body's are not among them any more, see transfer
}

var unfinisheds = sync.Pool{New: func() any { return new(unfinished) }}

const (
	// keptUnfinished is the most memory, in bytes, that a pooled unfinished keeps
	// for each of its buffers.
	keptUnfinished = 16 << 10

	// bareUnfinished is what one is reckoned to take besides its buffers, in bytes:
	// itself, and the places of some dozen header fields.
	bareUnfinished = 1 << 10

	// mostBodies bounds how many pieces of smallBody bytes are kept for bodies that
	// are too large for keptUnfinished, and bodyShare which part of the budget they may
	// be, one in so many.
	mostBodies = 64
	bodyShare  = 16
)

// newUnfinished takes a request that has begun from the pool. What it holds already
// has been received, so the budget cannot refuse it; the engine makes room for it
// afterwards.
func (x *wire) newUnfinished() *unfinished {
	u := unfinisheds.Get().(*unfinished)
	u.handler, u.by = x.handler, x.c.Account()
	u.hold(bareUnfinished + cap(u.raw) + cap(u.body))
	return u
}

func (u *unfinished) hold(n int) {
	u.held += n
	u.by.Force(admission.Input, int64(n))
}

// setRaw keeps the complete head's bytes.
func (u *unfinished) setRaw(raw []byte) {
	before := cap(u.raw)
	u.raw = append(u.raw[:0], raw...)
	u.hold(cap(u.raw) - before)
}

// addBody appends a piece of the body. Memory is taken for what has come, not for what
// was announced.
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

// left returns how many bytes of the body must come, -1 if that is unknown.
func (u *unfinished) left() int64 {
	if u.head.Chunked {
		return -1
	}
	return u.head.ContentLength - int64(len(u.body))
}

// Release gives u back when the engine has sent a response that lies in its body.
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

// transfer reserves for what the action is going to hold what the gathered part of the body takes, which goes into that: a
// body that comes in pieces is not held twice. See letBody.
func (u *unfinished) transfer(a *admission.Account) {
	if cap(u.body) == smallBody && !u.transferred {
		a.ReserveHeld(admission.Input, smallBody)
		u.held -= smallBody
		u.transferred = true
	}
}

// letBody gives a body's piece of memory back.
func (u *unfinished) letBody() {
	if cap(u.body) == smallBody {
		invariants.EndLoan(u.body)
		u.handler.bodies.Keep(u.body[:0], u.handler.keptBodies)
		u.body = nil
	}
}

// letGathered gives up the gathered part of the body, which was read, if its bytes were transferred.
func (x *wire) letGathered() {
	if x.gathered != nil && x.gathered.transferred {
		x.whole = nil
		x.gathered.letBody()
	}
}

func (u *unfinished) unhold() {
	if u.by != nil {
		u.by.Release(admission.Input, int64(u.held))
	}
	u.held, u.by = 0, nil
}

// abandon gives back to the budget what the exchange has of it, when memory is left to the
// collector because an action may have left it to others.
func (x *wire) abandon() {
	x.endEarly()
	x.call.Abandon()
	if x.gathered != nil {
		x.gathered.unhold()
	}
	if x.local != nil {
		x.local.release()
	}
}

// Account returns the account of the connection. A late action may still have it when the
// connection is another's.
func (x *wire) Account() *admission.Account {
	if !x.claim() {
		return nil
	}
	defer x.unclaim()
	x.using.Lock()
	defer x.using.Unlock()
	a := x.c.Account()
	if x.gathered != nil && x.streaming {
		x.gathered.transfer(a)
		if len(x.stream.early) == 0 {
			x.letGathered() // it was read already
		}
	}
	return a.Lend()
}

func (x *wire) ReleaseAccount(*admission.Account) {} // it is the connection's

// MayWait gives up the loop and the buffer that the request was read into, and lends the
// action's place to others.
func (x *wire) MayWait() {
	if x.claim() {
		if x.stdBody == nil {
			x.moveInput()
		}
		x.d.Detach()
		x.using.Lock()
		x.c.TrimInput()
		x.using.Unlock()
		x.unclaim()
	}
	x.d.Lend()
}

// Lost reports whether the client has gone, of whose body so many bytes have not been read.
func (x *wire) Lost(left int64) bool {
	if !x.claim() {
		return true
	}
	defer x.unclaim()
	if !x.streaming {
		return x.c.Lost(left)
	}
	return x.stream.lost(left)
}

// Waited ends that.
func (x *wire) Waited() { x.d.Regain() }

// keep empties a buffer that is to be pooled, and drops a large one.
func keep(b []byte) []byte {
	invariants.EndLoan(b)
	if cap(b) > keptUnfinished {
		return nil
	}
	return b[:0]
}
