//go:build linux

package engine

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// newHandshakes returns a line for a budget, with the given numbers of handshakes of each kind.
func newHandshakes(bound int64, whole, resume int) *handshakes {
	e := &Engine{start: time.Now(), cfg: Config{Budget: memory.New(bound), QueueTarget: -1}}
	s := &e.handshakes
	s.init(e)
	for kind, n := range [handshakeKinds]int{whole, resume} {
		for range n {
			s.join(handshakeKind(kind), new(Conn), 0)
		}
	}
	return s
}

// join appends c to the line, with the given time of arrival.
func (s *handshakes) join(kind handshakeKind, c *Conn, since int64) {
	s.lines[kind].push(c, s.source(c), since)
}

// connOf returns a connection of the address with number n.
func connOf(n byte) *Conn {
	return &Conn{peer: peerAddr{ip: netip.AddrFrom4([4]byte{192, 0, 2, n}).As16()}}
}

// stall begins the next handshake of a kind, which waits for its client; silent is the time of the client's silence in ns.
func stall(s *handshakes, kind handshakeKind, silent int64) *handshake {
	h := s.beginNext(kind)
	h.c.loop = &loop{e: s.e, waker: -1}
	h.c.loop.inbox.closed = true
	s.stop(h)
	h.since = s.e.now() - silent
	s.waiting = append(s.waiting, h)
	return h
}

// beginAll begins all handshakes that may begin, and returns their kinds in order.
func beginAll(s *handshakes) (order []handshakeKind) {
	for kind, ok := s.nextKind(); ok; kind, ok = s.nextKind() {
		order = append(order, s.beginNext(kind).kind)
	}
	return order
}

func TestHandshakeKindsAlternate(t *testing.T) {
	for _, c := range []struct {
		name          string
		whole, resume int
		few           handshakeKind
	}{
		{"a flood of whole ones", 1000, 3, handshakeResume},
		{"a flood of sessions", 3, 1000, handshakeWhole},
	} {
		order := beginAll(newHandshakes(0, c.whole, c.resume))
		if len(order) != c.whole+c.resume {
			t.Fatalf("%s: got %d of %d have begun", c.name, len(order), c.whole+c.resume)
		}
		seen := 0
		for i, kind := range order {
			if kind == c.few {
				if seen++; i > 2*seen-1 {
					t.Errorf("%s: handshake %d of the rare kind begins as number %d", c.name, seen, i+1)
				}
			}
		}
	}
}

// A few handshakes that join while many of the other kind are in line wait for one of those each.
func TestLaterHandshakesOfOtherKindAlternate(t *testing.T) {
	s := newHandshakes(0, 1000, 0)
	for range 10 {
		kind, _ := s.nextKind()
		s.beginNext(kind)
	}
	s.join(handshakeResume, new(Conn), 0)
	if kind, ok := s.nextKind(); !ok || kind != handshakeResume {
		t.Errorf("kind %d begins after the earlier handshakes", kind)
	}
}

func TestHandshakeKindLeavesRoomForOther(t *testing.T) {
	for _, bound := range []int64{1 << 20, 5 << 20, 24 << 20, 1 << 30} {
		all := max(int(bound/handshakeShare/handshakeMemory), minHandshakes+minHandshakes/handshakeReserve)
		for many := range handshakeKinds {
			counts := [handshakeKinds]int{}
			counts[many] = all + 1
			s := newHandshakes(bound, counts[handshakeWhole], counts[handshakeResume])
			began := len(beginAll(s))
			if began < minHandshakes || began > all-minHandshakes/handshakeReserve {
				t.Errorf("%d bytes: got %d of kind %d have begun, of %d that may in all", bound, began, many, all)
			}
			other := handshakeKinds - 1 - many
			for range all {
				s.join(other, new(Conn), 0)
			}
			for _, kind := range beginAll(s) {
				if kind != other {
					t.Fatalf("%d bytes: another of kind %d has begun", bound, many)
				}
			}
			if s.begun != all {
				t.Errorf("%d bytes: got %d have begun, want %d", bound, s.begun, all)
			}
		}
	}
}

// If one kind has all the room it may have, one of its own handshakes makes room. Otherwise it is the handshake that has kept
// others waiting for longest.
func TestHandshakeChosenForEviction(t *testing.T) {
	s := newHandshakes(1<<20, minHandshakes+1, minHandshakes)
	resumed := stall(s, handshakeResume, patientHandshake)
	first := stall(s, handshakeWhole, patientHandshake)
	for s.mayBegin(handshakeWhole) {
		stall(s, handshakeWhole, patientHandshake)
	}
	s.makeRoom(handshakeWhole)
	if resumed.given || !first.given {
		t.Errorf("with all whole ones begun: one with a session is given up: %v; the first whole one: got %v", resumed.given, first.given)
	}
	s.makeRoom(handshakeResume)
	if resumed.given {
		t.Error("a handshake with a session was ended although others can begin")
	}
	for s.mayBegin(handshakeResume) {
		stall(s, handshakeResume, patientHandshake)
	}
	s.join(handshakeResume, new(Conn), 0)
	s.makeRoom(handshakeResume)
	if !resumed.given {
		t.Error("with all begun that may, the one that has waited for longest was not given up")
	}
}

// When stopped clients have all handshakes but one, the newest client does not wait for all earlier ones.
func TestNewestHandshakeIsNextAmongStalled(t *testing.T) {
	for _, c := range []struct {
		name   string
		waited int64 // wait of the oldest in line
		left   int   // handshakes that may begin
		newest bool
	}{
		{"the oldest has waited long", patientHandshake, 1, true},
		{"the oldest has waited for a moment", patientHandshake / 2, 1, false},
		{"more may begin", patientHandshake, 2, false},
	} {
		s := newHandshakes(1<<20, 0, 0)
		s.e.start = time.Now().Add(-time.Minute)
		l := &s.lines[handshakeWhole]
		most, _ := s.room()
		l.begun, s.begun = most-c.left, most-c.left
		now := s.e.now()
		var conns [3]*Conn
		for i := range conns {
			conns[i] = new(Conn)
			s.join(handshakeWhole, conns[i], now-c.waited*int64(len(conns)-1-i)/2)
		}
		want := conns[0]
		if c.newest {
			want = conns[2]
		}
		if got := s.beginNext(handshakeWhole); got.c != want {
			t.Errorf("%s: the wrong one has begun", c.name)
		}
	}
}

// An address with many connections in line, and an address with one, take turns.
func TestHandshakesOfAddressesAlternate(t *testing.T) {
	s := newHandshakes(0, 0, 0)
	for range 1000 {
		s.join(handshakeWhole, connOf(1), 0)
	}
	few := map[*Conn]bool{}
	for n := byte(2); n < 6; n++ {
		c := connOf(n)
		few[c] = true
		s.join(handshakeWhole, c, 0)
	}
	for range len(few) + 1 {
		delete(few, s.beginNext(handshakeWhole).c)
	}
	if len(few) > 0 {
		t.Errorf("%d of 4 have not begun when one of the many has", len(few))
	}
	for s.lines[handshakeWhole].all.Len() > 0 {
		s.beginNext(handshakeWhole)
	}
	if len(s.sources) != 5 {
		t.Errorf("%d sources, want 5", len(s.sources))
	}
	for _, h := range slices.Clone(s.running) {
		h.c.loop = &loop{e: s.e}
		s.end(h)
	}
	if len(s.sources) != 0 {
		t.Errorf("%d sources are left", len(s.sources))
	}
}

// An address whose stopped handshakes fill the limit gives room to other addresses at once, and to itself after a while.
// Connections of unknown addresses are not treated as one address.
func TestStalledHandshakesOfAddressMakeRoom(t *testing.T) {
	fill := func(c func() *Conn) *handshakes {
		s := newHandshakes(1<<20, 0, 0)
		for range 2 * minHandshakes {
			s.join(handshakeWhole, c(), s.e.now())
		}
		for s.mayBegin(handshakeWhole) {
			stall(s, handshakeWhole, 0)
		}
		return s
	}
	many := func() *Conn { return connOf(1) }
	s := fill(many)
	s.makeRoom(handshakeWhole)
	if s.given > 0 {
		t.Error("a handshake was ended at once for another of its address")
	}
	first := s.waiting[0]
	other := connOf(2)
	s.join(handshakeWhole, other, s.e.now())
	s.makeRoom(handshakeWhole)
	if !first.given || s.given != 1 {
		t.Fatalf("%d handshakes were given up for another address, the one that has waited longest: %v", s.given, first.given)
	}
	s.begun--
	s.lines[handshakeWhole].begun--
	if h := s.beginNext(handshakeWhole); h.c != other {
		t.Error("room was made for one connection and another one began")
	}
	s = fill(func() *Conn { return new(Conn) })
	s.join(handshakeWhole, other, s.e.now())
	if s.makeRoom(handshakeWhole); s.given > 0 {
		t.Error("a handshake of an unknown address was ended at once")
	}
	s.waiting[0].since -= patientHandshake
	if s.makeRoom(handshakeWhole); s.given != 1 {
		t.Errorf("%d handshakes were given up whose clients are silent for long", s.given)
	}
}
