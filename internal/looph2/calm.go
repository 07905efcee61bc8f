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

// Clients that send too much that serves no request (http2.Reason) must not slow others down.
//
//   - Frames that cost tokens are served a few at a time, with other connections in between.
//   - A connection without tokens is not read any more, and told a moment later why it ends. If it ended at once, a client
//     that connects again as fast would make the server begin connection after connection.
//   - New connections from the same address have fewer tokens for a while.

const (
	// calmTime is how long a connection whose client did too much stays before it ends.
	calmTime = 300 * time.Millisecond
	// distrustTime is for how many seconds the connections of an address begin with fewer tokens.
	distrustTime = 10
)

// A calm is the state of a session whose client did too much: it is not served any more.
type calm struct{ farewell []byte }

// calmDown stops serving a client that did too much. The frames that say so, in the output from byte begin
// on, are sent later.
func (s *session) calmDown(begin int, of http2.Reason) {
	if of != http2.Blocks { // an honest client may have that many cookies, and others of its address have not
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

// endCalm ends the connection. What its client goes on to send is not read.
func (s *session) endCalm() {
	s.h2.Out = append(s.h2.Out, s.calm.farewell...)
	s.calm.farewell = nil
	s.c.CloseLingering()
}

// source returns the address whose connection it is; none for one that stands for many clients.
func (s *session) source() netip.Addr {
	from := s.c.RemoteAddr().Addr()
	if s.h.server.TrustedProxies().Trusts(from) {
		return netip.Addr{}
	}
	return from
}

// offenders are the addresses of clients that did too much lately. Of two that share a place the later one is known.
type offenders struct {
	seed   maphash.Seed
	places [256]atomic.Uint64 // the upper half of the hash of one, and the second on the engine's clock until when
}

// hash is that of an address, or of the 64 bits of an IPv6 address that a single host is given.
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
