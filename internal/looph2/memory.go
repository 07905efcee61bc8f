//go:build linux

package looph2

import (
	"net/netip"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// What a stream makes the server hold is charged to an account of its own, since a connection carries many:
// head and body while they wait for more, for a worker, or for an answer that lasts; and the answer that the
// client does not take. Config.MaxMemoryPerConnection bounds the accounts of a connection together. When others
// need the room, only the stream is ended: it is reset, with REFUSED_STREAM if its action has not begun, and what
// has come of a body that is not read is dropped.

// accountOf returns the stream's account. s.mu is held.
func (own *stream) accountOf() *admission.Account {
	if own.account == nil && !own.finalized {
		own.kept.Store(true) // the account knows it
		own.account = own.s.h.server.Holders.Open((*holder)(own), own.s.source())
		own.account.Join(own.s.Group())
	}
	return own.account
}

// hold corrects what is charged for a use. s.mu is held.
func (own *stream) hold(u admission.Use, n int64) {
	held := &own.held[0]
	if u == admission.Output {
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

// holdInput corrects what is charged for the request: its head, and what is here of its body. s.mu is held.
func (own *stream) holdInput() {
	if own.in.transferred > own.in.unread.size {
		own.in.transferred = own.in.unread.size
	}
	n := streamCost + own.in.unread.size - own.in.transferred + cap(own.here) + own.req.Fields.Footprint() + own.in.trailersCost
	if own.in.waits {
		n += waitingCost
	}
	if own.apart {
		n += exchange.BackgroundCost
	}
	own.hold(admission.Input, int64(n))
}

// transferInput reserves for what the action is going to hold what is here of its body, which goes into that: it is not
// charged twice. s.mu is held.
func (own *stream) transferInput(a *admission.Account) {
	own.holdInput()
	n := own.in.unread.size - own.in.transferred
	if n == 0 {
		return
	}
	a.ReserveHeld(admission.Input, int64(n))
	own.held[0] -= int64(n)
	own.in.transferred += n
}

// waitingCost is what is charged for an action that waits for its body: about what its goroutine takes.
const waitingCost = 12 << 10

// streamCost is about what a stream takes itself, in bytes.
const streamCost = 1 << 10

const (
	// smallTables is what is not charged of a connection's tables, in bytes: an account takes as much.
	smallTables = 512
	// tablesStep is by how much they must change to be charged anew.
	tablesStep = 256
	// movedEvery is how often, in ns, the account is told at most that its client does something.
	movedEvery = int64(time.Second)
)

// chargeTables corrects what is charged to the connection: its dynamic tables and what else its client has it
// remember, and a field block that is half here, which is no stream's yet. consumed is how much its client
// has sent.
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
		s.c.Moved(int64(consumed), -1)
	}
}

func (s *session) charge(n int64) {
	switch by := n - s.charged; {
	case by > 0:
		s.c.Account().Force(admission.Input, by)
	case by < 0:
		s.c.Account().Release(admission.Input, -by)
	}
	s.charged = n
}

// Group returns whose account it is: all that a connection holds is bounded together, but for one that carries
// many clients, see engine.Grouped.
func (s *session) Group() *admission.Group {
	if s.h.server.TrustedProxies().Trusts(s.c.RemoteAddr().Addr()) {
		return nil
	}
	return &s.group
}

// working says whether the client has done its part for now. s.mu is held.
func (own *stream) working(working bool) {
	if own.account != nil {
		own.account.Working(working)
	}
}

// moved notes that the client has sent or taken n bytes. s.mu is held.
func (own *stream) progress(n, left int64) {
	if own.account != nil {
		own.account.Moved(n, left)
	}
}

// A holder is a stream as one who holds memory.
type holder stream

func (h *holder) RemoteAddr() netip.AddrPort { return h.s.c.RemoteAddr() }

// End has the stream let go: its loop does that.
func (h *holder) End(a *admission.Account) {
	own := (*stream)(h)
	go func() {
		own.s.mu.Lock()
		defer own.s.mu.Unlock()
		if own.finalized || own.account != a {
			return
		}
		own.s.h.server.NoteEnded(h.RemoteAddr(), a)
		own.noRoom = true
		own.keepAhead(0)
		// It is going to be cut. What there is of its answer is free at once, since the loop does not look while the socket is
		// full, and no more is made.
		if own.sends() || own.headsCost > 0 || own.complete != nil || own.rests() {
			own.setCanceled()
			own.dropComplete()
			own.dropRest()
		}
		own.hasMoved()
		own.s.post(own)
	}()
}

// sends reports whether an answer in pieces has begun, and has not been sent. s.mu is held.
func (own *stream) sends() bool { return own.unsent() > 0 || own.started && !own.finished }

// endedForRoom reports whether others need what the stream holds.
func (own *stream) endedForRoom() bool {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	return own.noRoom
}

// noMemory is the error of a body that there is no room for.
func (own *stream) noMemory() error {
	met := admission.NoCap
	if own.account != nil {
		met = own.account.Met()
	}
	return own.s.h.server.Pipeline.NoMemory("the request body", met)
}

// makeRoom ends a stream that holds most.
func (s *session) makeRoom(own *stream) {
	s.mu.Lock()
	own.noRoom = own.running && !own.ended
	if own.noRoom { // reading fails
		own.dropUnread()
		own.holdInput()
	}
	inLine := own.inLine
	if inLine { // nor does it begin now: the client is told that it may ask again
		own.setCanceled()
	}
	sends := own.canceled || own.sends()
	s.mu.Unlock()
	switch {
	case inLine:
		s.h2.Reset(own.st, http2.RefusedStream) // its action has not begun
		s.drop(own)
	case own.gathering:
		own.gathering = false
		s.bodies--
		s.mu.Lock()
		own.noRoom, own.here = true, nil // there is room at once, whether its client takes the answer or not
		own.holdInput()
		s.mu.Unlock()
		s.refuse(own, &own.req, own.noMemory(), exchange.FromMemory)
	case own.rests() || sends:
		s.cut(own)
	default:
		s.conclude(own)
	}
}
