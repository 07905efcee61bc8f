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

// Clients that send too many frames without effect (http2.Reason) must not delay others.
//
//  - Frames that cost tokens are processed a few at a time, alternating with other connections.
//  - A connection without tokens is not read any more, and its client is told the reason a moment later. If it were closed at once, a client that reconnects as fast would make the server accept connection after connection.
//  - New connections from the same address have fewer tokens for a while.

const (
	// calmTime is the time for which such a connection stays open.
	calmTime = 300 * time.Millisecond
	// distrustTime is the time, in seconds, for which connections of the address begin with fewer tokens.
	distrustTime = 10
)

// A calm is the state of a session that is not served any more because its client exceeded a limit.
type calm struct{ farewell []byte }

// calmDown stops serving such a client. The frames that tell it, in the output from byte begin on, are sent later.
func (s *session) calmDown(begin int, of http2.Reason) {
	if of != http2.Blocks { // an honest client may have that many cookies, and other clients of its address do not
		s.h.offenders.add(s.source(), s.d.Now())
	}
	s.calm = &calm{bytes.Clone(s.h2.Out[begin:])}
	s.h2.Out = s.h2.Out[:begin]
	s.goodbye = ended
	s.end()
	s.h2.DropBlock()
	s.c.Notes |= engine.Paused
	s.c.SetDeadline(calmTime)
}

// endCalm closes the connection. Further input is not read.
func (s *session) endCalm() {
	s.h2.Out = append(s.h2.Out, s.calm.farewell...)
	s.calm.farewell = nil
	s.c.CloseLingering()
}

// source returns the address of the connection; none for one that carries many clients.
func (s *session) source() netip.Addr {
	from := s.c.RemoteAddr().Addr()
	if s.h.server.TrustedProxies().Trusts(from) {
		return netip.Addr{}
	}
	return from
}

// offenders are the addresses of clients that exceeded a limit lately. If two hash to one place, the later one is stored.
type offenders struct {
	seed   maphash.Seed
	places [256]atomic.Uint64 // the upper half of the hash, and the second on the engine's clock at which the entry expires
}

// hash hashes an address, or the first 64 bits of an IPv6 address, which belong to a single host.
func (o *offenders) hash(from netip.Addr) uint64 {
	key := admission.Network(from, 64).As16()
	return maphash.Bytes(o.seed, key[:])
}

func (o *offenders) add(from netip.Addr, now int64) {
	if from.IsValid() {
		h := o.hash(from)
		o.places[h%uint64(len(o.places))].Store(h>>32<<32 | uint64(uint32(now/int64(time.Second))+distrustTime))
	}
}

func (o *offenders) has(from netip.Addr, now int64) bool {
	if !from.IsValid() {
		return false
	}
	h := o.hash(from)
	kept := o.places[h%uint64(len(o.places))].Load()
	return kept != 0 && kept>>32 == h>>32 && uint32(now/int64(time.Second)) < uint32(kept)
}
