//go:build linux

package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// Without descriptors for more connections, or at the bound of connections, a loop ends some of its connections, so that it can
// accept connections from the backlog. It ends them in this order:
//
//	1. idle connections, the longest idle first: those not used for a second, and new ones that
//	   have sent nothing for an eighth of a second (dropIdle);
//	2. idle connections not used for an eighth of a second, of an address with more than half of
//	   the loop's connections (dropRecent): otherwise one request a second on each connection
//	   would let this address keep all of them;
//	3. idle connections of many parts, if their handler agrees;
//	4. connections that wait for their peer in the middle of a head, a small body or a handshake,
//	   of the address with the most of them. If no address has several, and the pause lasts, the
//	   connections with the longest wait;
//	5. if the pause lasts, all idle connections of the address of 2.
//
// Requests that are being served, and answers that are being sent, continue.

// busyFlags are set on a connection that is about to be served or closed.
const busyFlags = flagReadable | flagPeerDone | flagEOF | flagAgain | flagHandOff | flagCloseAfter | flagCloseNow | flagLingering

// makeConnRoom ends some connections. It is called when accepting pauses, and again during a long pause.
func (l *loop) makeConnRoom() {
	if l.dropIdle(false) > 0 || l.dropRecent(silentTicks) > 0 || l.now < l.acceptor.roomAt {
		return
	}
	lasts := l.acceptor.roomAt != 0
	l.acceptor.roomAt = l.now + evictPause
	var parts, slow []*Conn
	for _, c := range l.conns {
		switch {
		case c == nil || c.state.Load() != atLoop || c.queued || c.out != nil || c.flags&busyFlags != 0:
		case c.Notes&Parts != 0:
			parts = append(parts, c)
		case c.Notes&switched != 0: // its protocol decides how long it lasts
		case !c.idle() && c.deadline != 0 && c.Notes&Paused == 0:
			slow = append(slow, c)
		}
	}
	if n := len(parts); n > 0 { // begin at a random connection, so that each call checks other ones
		at := rand.IntN(n)
		for i := range min(n, max(n/idleShare, minIdle)) {
			l.post(message{kind: msgEvict, conn: parts[(at+i)%n]})
		}
		if !lasts {
			return
		}
	}
	if !l.evictSlow(slow, lasts) && lasts {
		l.dropRecent(0)
	}
}

// dropRecent closes idle connections of an address with more than half of the loop's connections, longest idle first.
// Connections used within the given number of ticks stay open. It returns the number of closed connections.
func (l *loop) dropRecent(recent uint32) (closed int) {
	return l.closeIdle(l.recentConns(recent), "no room for more connections")
}

// recentConns returns the connections that dropRecent may close.
func (l *loop) recentConns(recent uint32) (idle []*Conn) {
	most, ok := l.majority()
	if !ok {
		return nil
	}
	newest := l.idleTick(recent)
	for _, c := range l.conns {
		if c != nil && c.state.Load() == atLoop && c.idle() && c.flags&busyFlags == 0 && !c.queued && c.deadline != 0 && c.deadline <= newest {
			if k, ok := l.addressOf(c); ok && k == most {
				idle = append(idle, c)
			}
		}
	}
	return idle
}

// addressOf returns the address of a connection. ok is false if the address stands for many clients.
func (l *loop) addressOf(c *Conn) (k admission.AddressKey, ok bool) {
	if ip := l.e.source(c.peer.addr()); ip.IsValid() {
		return admission.AddressKeyOf(ip), true
	}
	return k, false
}

// majority returns the address with more than half of the loop's connections. It uses the majority vote of Boyer and Moore
// (1981): every connection of another address takes a vote from the candidate, so an address with more than half is the last
// candidate. Then its connections are counted.
func (l *loop) majority() (most admission.AddressKey, ok bool) {
	votes := 0
	for _, c := range l.conns {
		if c == nil {
			continue
		}
		switch k, ok := l.addressOf(c); {
		case ok && votes == 0:
			most, votes = k, 1
		case ok && k == most:
			votes++
		case votes > 0:
			votes--
		}
	}
	n := 0
	for _, c := range l.conns {
		if c != nil {
			if k, ok := l.addressOf(c); ok && k == most {
				n++
			}
		}
	}
	return most, n > int(l.count.Load())/2
}

// evictSlow ends connections that wait for their peer: half of those of the address with the most of them. lasts is true if the
// pause lasts. evictSlow reports whether it has ended any.
func (l *loop) evictSlow(slow []*Conn, lasts bool) bool {
	counts := make(map[admission.AddressKey]int)
	for _, c := range slow {
		if k, ok := l.addressOf(c); ok {
			counts[k]++
		}
	}
	count := func(c *Conn) int {
		if k, ok := l.addressOf(c); ok {
			return counts[k]
		}
		return 1 // its address carries many clients
	}
	most := 0
	for _, c := range slow {
		most = max(most, count(c))
	}
	if l.e.handshakes.evict(most, lasts) {
		return true
	}
	if most == 0 || most == 1 && !lasts {
		return false
	}
	slices.SortStableFunc(slow, func(a, b *Conn) int {
		return cmp.Or(cmp.Compare(count(b), count(a)), cmp.Compare(a.deadline, b.deadline))
	})
	n := most / 2
	if most == 1 {
		n = min(len(slow), minIdle)
	}
	for _, c := range slow[:n] {
		l.post(message{kind: msgEvict, conn: c})
	}
	return true
}

// evict makes the handler end c, if c still waits for its peer. It reports whether d still drives the loop.
func (l *loop) evict(d *Driver, c *Conn) bool {
	if c.slot < 0 || !c.noteEvent(0) || c.queued || c.out != nil || c.flags&busyFlags != 0 || c.idle() {
		return true
	}
	if unread, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ); err == nil && unread > 0 {
		return true // its peer has continued
	}
	d.begin(c)
	switch {
	case c.awaitsHeader():
		d.engine.noteHeader(c, errHeaderSlow)
	case c.greeting():
		d.greetedTooSlowly(c)
	default:
		d.evicting = true
		d.timeOut(c)
		d.evicting = false
		c.flags &^= flagLinger // all input has been read, and the descriptor is needed now
	}
	return d.end(c)
}

// Evicting reports whether the handler's Timeout is called because other connections need the descriptor. The handler must end
// the connection if it is idle, or waits for its peer.
func (d *Driver) Evicting() bool { return d.evicting }

// evict ends handshakes that wait for their clients: half of those of the address with the most handshakes, if that address has
// at least two of them and at least others. If lasts is true and others is 0, evict also ends a single handshake. It reports
// whether it has ended any.
func (s *handshakes) evict(others int, lasts bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.maxWaiting(func(*handshake) bool { return true })
	if most == nil || most.source.begun < max(others, 2) && !(lasts && others == 0) {
		return false
	}
	src := most.source
	for n := max(src.begun/2, 1); n > 0; n-- {
		i := slices.IndexFunc(s.waiting, func(h *handshake) bool { return h.source == src })
		if i < 0 {
			break
		}
		s.giveUp(s.waiting[i])
	}
	return true
}
