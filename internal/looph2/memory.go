//go:build linux

package looph2

import (
	"net/netip"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// What a stream makes the server hold is charged to an account of its own, since a connection
// carries many: the body that has come, as it is gathered or not read yet, and the answer that
// its client does not take. When others need the room, the stream alone is ended.

// accountOf returns the stream's account. s.mu is held.
func (own *stream) accountOf() *admission.Account {
	if own.account == nil && !own.finalized {
		own.kept.Store(true) // the account knows it
		server, remote := own.s.h.server, own.s.c.RemoteAddr()
		from := remote.Addr()
		if server.TrustedProxies().Trusts(from) {
			from = netip.Addr{} // it stands for many clients
		}
		own.account = server.Holders.Open(&holder{own: own, remote: remote}, from)
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
type holder struct {
	own    *stream
	remote netip.AddrPort
}

func (h *holder) RemoteAddr() netip.AddrPort { return h.remote }

// End has the stream let go: its loop does that.
func (h *holder) End(a *admission.Account) {
	own := h.own
	own.s.h.server.NoteEnded(h.remote, a)
	go func() {
		own.s.mu.Lock()
		defer own.s.mu.Unlock()
		if own.finalized || own.account != a {
			return
		}
		own.noRoom = true
		own.moved.Broadcast()
		own.s.post(own)
	}()
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
	own.noRoom = own.running && !own.ended // reading fails
	pending := len(own.out) > 0
	s.mu.Unlock()
	switch {
	case own.gathering:
		own.gathering = false
		s.bodies--
		s.refuse(own, &own.req, own.noMemory(), exchange.FromMemory)
	case own.rest != nil || pending:
		s.cut(own)
	default:
		s.conclude(own)
	}
}
