//go:build linux

package looph2

import (
	"net/netip"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// The memory that the server holds for a stream is charged to an account of the stream's own, since a connection carries many
// streams: head and body while they wait for more input, for a worker, or for a long-lived answer; and the pending output.
// Config.Limits.MaxMemoryPerConnection bounds the sum of the accounts of a connection. When others need the room, only the stream is
// evicted: it is reset, with REFUSED_STREAM if its action has not begun, and the unread bytes of its body are dropped.

// A holding is the memory that is charged for a stream, guarded by session.mu.
type holding struct {
	account    *memory.Account
	held       [2]int64 // bytes charged to it: input, output
	ahead      bool     // it has reserved room for the answer
	background bool     // it has a goroutine of its own
}

// accountOf returns the stream's account. s.mu is held.
func (own *stream) accountOf() *memory.Account {
	if own.account == nil && own.action != freed {
		own.kept.Store(true) // the account refers to it
		own.account = own.s.h.server.Budget.Open((*holder)(own), own.s.source())
		own.account.Join(own.s.AccountSet())
	}
	return own.account
}

// hold corrects the charge for a use. s.mu is held.
func (own *stream) hold(u memory.Use, n int64) {
	held := &own.held[0]
	if u == memory.Output {
		held = &own.held[1]
	}
	by := n - *held
	if by == 0 {
		return
	}
	a := own.accountOf()
	if a == nil {
		return
	}
	*held = n
	if by > 0 {
		a.Force(u, by)
	} else {
		a.Release(u, -by)
	}
}

// holdInput corrects the charge for the request: its head, and the received part of its body. s.mu is held.
func (own *stream) holdInput() {
	if own.in.transferred > own.in.unread.size {
		own.in.transferred = own.in.unread.size
	}
	n := streamCost + own.in.unread.size - own.in.transferred + cap(own.here) + own.req.Fields.Footprint() + own.in.trailersCost
	if own.in.waits {
		n += waitingCost
	}
	if own.background {
		n += exchange.BackgroundCost
	}
	own.hold(memory.Input, int64(n))
}

// transferInput turns the charge for the received part of the body into a reservation on a, for the object that the action
// reads it into. So the body is not charged twice. s.mu is held.
func (own *stream) transferInput(a *memory.Account) {
	own.holdInput()
	n := own.in.unread.size - own.in.transferred
	if n == 0 {
		return
	}
	a.ReserveForOutput(memory.Input, int64(n))
	own.held[0] -= int64(n)
	own.in.transferred += n
}

// waitingCost is the charge for a request that waits for its body: approximately the size of its goroutine.
const waitingCost = 12 << 10

// streamCost is the approximate size of a stream, in bytes.
const streamCost = 1 << 10

const (
	// smallTables is the size of a connection's tables that is not charged, in bytes: an account itself takes as much.
	smallTables = 512
	// tablesStep is the change of their size from which the charge is corrected.
	tablesStep = 256
	// movedEvery is the minimum time, in ns, between two reports to the account that the client is active.
	movedEvery = int64(time.Second)
)

// chargeTables corrects the charge to the connection: for its dynamic tables and other state that its client makes it keep, and
// for an incomplete field block, which belongs to no stream yet. consumed is the number of bytes that its client has sent.
func (s *session) chargeTables(consumed int) {
	n := int64(s.h2.Footprint())
	switch by := n - s.charged; {
	case n <= smallTables:
		s.charge(0)
	case by >= tablesStep || by <= -tablesStep || s.charged == 0:
		s.charge(n)
	}
	if s.charged > 0 && consumed > 0 && s.d.Now()-s.movedAt >= movedEvery {
		s.movedAt = s.d.Now()
		s.c.Progress(int64(consumed), -1)
	}
}

func (s *session) charge(n int64) {
	switch by := n - s.charged; {
	case by > 0:
		s.c.Account().Force(memory.Input, by)
	case by < 0:
		s.c.Account().Release(memory.Input, -by)
	}
	s.charged = n
}

// AccountSet returns the set of the account. The set bounds everything that a connection holds, except a connection that carries many
// clients, see engine.State.
func (s *session) AccountSet() *memory.AccountSet {
	if s.h.server.TrustedProxies().Trusts(s.c.RemoteAddr().Addr()) {
		return nil
	}
	return &s.accounts
}

// setWorking records in the account whether the server works on the request, instead of waiting for the client. s.mu is held.
func (own *stream) setWorking(working bool) {
	if own.account != nil {
		own.account.SetWorking(working)
	}
}

// progress records that the client has sent or received n bytes, and that left bytes remain, -1 if unknown. s.mu is held.
func (own *stream) progress(n, left int64) {
	if own.account != nil {
		own.account.Progress(n, left)
	}
}

// A holder is a stream as a holder of memory.
type holder stream

func (h *holder) RemoteAddr() netip.AddrPort { return h.s.c.RemoteAddr() }

// End asks the loop of the stream to end it.
func (h *holder) End(a *memory.Account) {
	own := (*stream)(h)
	go func() {
		own.s.mu.Lock()
		defer own.s.mu.Unlock()
		if own.action == freed || own.account != a {
			return
		}
		own.s.h.server.NoteEnded(h.RemoteAddr(), a)
		own.noRoom = true
		own.trimReservation(0)
		// The stream is about to be cut. The pending part of its answer is freed at once, since the loop does not read the inbox
		// while the socket is full, and no more is produced.
		if own.sends() || own.headsCost > 0 || own.complete != nil || own.rests() {
			own.setCanceled()
			own.dropComplete()
			own.dropRest()
		}
		own.hasMoved()
		own.s.notify(own)
	}()
}

// sends reports whether a streamed answer has begun and is not sent entirely. s.mu is held.
func (own *stream) sends() bool {
	return own.unsent() > 0 || own.answer == begun || own.answer == aborted
}

// noMemory returns the error of a body for which there is no room.
func (own *stream) noMemory() error {
	met := memory.NoCap
	if own.account != nil {
		met = own.account.Met()
	}
	return own.s.h.server.Pipeline.NoMemory("the request body", met)
}

// makeRoom ends a stream that was evicted.
func (s *session) makeRoom(own *stream) {
	s.mu.Lock()
	own.noRoom = own.action.underWay()
	if own.noRoom { // reading fails
		own.dropUnread()
		own.holdInput()
	}
	waits := own.action.waits()
	if waits { // it does not begin any more: the client learns that it may retry
		own.setCanceled()
	}
	sends := own.answer.canceled() || own.sends()
	s.mu.Unlock()
	switch {
	case waits:
		s.h2.Reset(own.st, http2.RefusedStream) // its action has not begun
		s.drop(own)
	case own.intake == gathering:
		s.endGathering(own, refuse)
		s.mu.Lock()
		own.noRoom, own.here = true, nil // frees the memory at once, whether or not the client takes the answer
		own.holdInput()
		s.mu.Unlock()
		s.refuse(own, &own.req, own.noMemory(), exchange.FromMemory)
	case own.rests() || sends:
		s.cut(own)
	default:
		s.conclude(own)
	}
}
