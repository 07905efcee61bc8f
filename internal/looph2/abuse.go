//go:build linux

package looph2

import (
	"bytes"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// Clients that send too many frames that serve no request (http2.Reason) must not slow others down.
//
//	- Frames that cost tokens are served a few at a time, alternating with other connections.
//	- The loop stops reading a connection without tokens, and sends the reason a moment later. If the connection
//	  ended at once, a client that reconnects as fast would make the server begin connection after connection.
//	- New connections from the same address have fewer tokens for a while.

const (
	// abuserDelay is the time between the last frame that is served on such a connection and the end of the connection.
	abuserDelay = 300 * time.Millisecond
	// distrustTime is the number of seconds for which new connections from such an address begin with fewer tokens.
	distrustTime = 10
)

// An abuser is the state of a session that is no longer served because its client sent too much.
type abuser struct{ farewell []byte }

// refuseAbuser stops serving a client that sent too much. The frames that report it, in the output from byte begin on, are sent
// later.
func (s *session) refuseAbuser(begin int, of http2.Reason) {
	if of != http2.Blocks { // an honest client may have that many cookies, and other clients of its address may not
		s.h.offenders.add(s.source(), s.d.Now())
	}
	s.abuser = &abuser{bytes.Clone(s.h2.Out[begin:])}
	s.h2.Out = s.h2.Out[:begin]
	s.goodbye = ended
	s.end()
	s.h2.DropBlock()
	s.c.Notes |= engine.Paused
	s.c.SetDeadline(abuserDelay)
}

// closeAbuser sends the reason and ends the connection. Further input is not read.
func (s *session) closeAbuser() {
	s.h2.Out = append(s.h2.Out, s.abuser.farewell...)
	s.abuser.farewell = nil
	s.c.CloseLingering()
}

// source returns the client address of the connection, or none if the connection carries many clients.
func (s *session) source() netip.Addr {
	from := s.c.RemoteAddr().Addr()
	if s.h.server.TrustedProxies().Trusts(from) {
		return netip.Addr{}
	}
	return from
}

// offenders holds the addresses of clients that sent too much lately. If two addresses have the same slot, it holds the one that was
// added last.
type offenders struct {
	seed  maphash.Seed
	slots [256]atomic.Uint64 // the upper half of an address's hash, and the second on the engine's clock at which its entry expires
}

// hash returns the hash of an address; of an IPv6 address, that of the first 64 bits, which identify the network of a single
// host.
func (o *offenders) hash(from netip.Addr) uint64 {
	key := admission.Network(from, 64).As16()
	return maphash.Bytes(o.seed, key[:])
}

func (o *offenders) add(from netip.Addr, now int64) {
	if from.IsValid() {
		h := o.hash(from)
		o.slots[h%uint64(len(o.slots))].Store(h>>32<<32 | uint64(uint32(now/int64(time.Second))+distrustTime))
	}
}

func (o *offenders) has(from netip.Addr, now int64) bool {
	if !from.IsValid() {
		return false
	}
	h := o.hash(from)
	kept := o.slots[h%uint64(len(o.slots))].Load()
	return kept != 0 && kept>>32 == h>>32 && uint32(now/int64(time.Second)) < uint32(kept)
}
