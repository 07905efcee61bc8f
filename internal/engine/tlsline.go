//go:build linux

package engine

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/overload"
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// A handshake costs as much as a hundred requests, and anybody may ask for any number of them. So they wait
// in a line of their own, and have at most half of the processors: the others serve open connections.
//
//	line ──▶ running ◀──▶ waiting for its client ──▶ over
//
// A handshake has a processor only while it computes. Those that go on come before those that begin. One
// that keeps its processor for longer than any computation takes, because code of the application blocks in a
// way that tlscalls.go does not notice, is not counted until that returns.
//
// Clients that resume a session have a line of their own. Overload control judges each line by itself, and where both have
// handshakes these begin in turn: a flood of full handshakes does not delay clients that resume, and a flood of made-up
// sessions, which cost their sender nothing, takes half of the processor time at most.
//
// How many have begun is bounded by the memory that they take, of which neither kind can have all. When no other can begin,
// a handshake that waits for its client is ended: of the address with most handshakes the one that has waited longest. So clients
// that stop in the middle take places from others of their address, and from other addresses only up to an equal share.
type shakes struct {
	e    *Engine
	most int  // processors they may have
	only bool // there is one processor: handshakes have it until the time until, then the loop has a turn

	mu      sync.Mutex
	running []*shake
	back    []*shake // they wait for a processor to go on
	waiting []*shake // for their clients, the longest first
	begun   int
	given   int // of these, how many were given up
	sources map[admission.AddressKey]*shakeSource
	lines   [shakeKinds]shakeLine
	latest  shakeKind // which began last
	until   int64
	watch   *time.Timer
	watched bool
}

// A shakeKind is what a client asks for, which may not be what it gets.
type shakeKind uint8

const (
	shakeWhole  shakeKind = iota
	shakeResume           // its ClientHello has a session
	shakeKinds
)

const (
	// shakeMemory is about what a handshake takes, in bytes, until it is over.
	shakeMemory = 40 << 10
	// shakeLeft is about how many bytes a client still has to send after the server's flight.
	shakeLeft = 100
	// Handshakes may use one part in shakeShare of the budget, but leastShakes of them always may have begun.
	shakeShare  = 2
	leastShakes = 64
	// One part in shakeReserve of that is left to each kind by the other.
	shakeReserve = 4

	// A handshake may wait shakeTarget times as long as a request, and its line may stand for as many times as long,
	// before any is refused: a client that is sent away comes back with another handshake, and one of many that connect
	// at once is served sooner than it could come back.
	shakeTarget = 20

	// longShake is for how long, in ns, a handshake may have a processor: some twenty times what the
	// slowest of usual keys takes.
	longShake = int64(20 * time.Millisecond)
	// patientShake is how long, in ns, a client is waited for at least before its handshake is ended to make
	// room: what was lost on the way is sent again after a second (RFC 6298, section 2.1).
	patientShake = int64(1500 * time.Millisecond)
)

func (s *shakes) init(e *Engine) {
	s.e = e
	procs := runtime.GOMAXPROCS(0)
	s.most, s.only = max(procs/2, 1), procs == 1
	for kind := range shakeKinds {
		s.lines[kind].kind = kind
		s.lines[kind].control = overload.NewQueue(shakeTarget * e.cfg.QueueTarget)
	}
}

// room returns how many may have begun, of one kind and in all.
func (s *shakes) room() (kind, all int) {
	bound := s.e.cfg.Budget.Bound()
	if bound <= 0 {
		return 1<<31 - 1, 1<<31 - 1
	}
	all = int(bound / shakeShare / shakeMemory)
	kind = max(all-all/shakeReserve, leastShakes)
	return kind, max(all, kind+leastShakes/shakeReserve)
}

// queued returns how many are in line. s.mu is held.
func (s *shakes) queued() (n int) {
	for kind := range s.lines {
		n += s.lines[kind].all.Len()
	}
	return n
}

// kind returns what the client of c, whose ClientHello is here, asks for.
func (t *tlsState) kind() shakeKind {
	if !t.on.Config.SessionTicketsDisabled && tlsmem.AsksToResume(t.records()) {
		return shakeResume
	}
	return shakeWhole
}

// submit puts c, which is away from its loop, in line for its handshake.
func (s *shakes) submit(c *Conn) {
	kind := c.secure().kind()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[kind].push(c, s.source(c), s.e.now())
	s.lines[kind].control.Arrived(overload.Idle, 1)
	s.next()
}

// next gives free processors to the handshakes whose turn it is. s.mu is held.
func (s *shakes) next() {
	for len(s.running) < s.most {
		if len(s.back) > 0 {
			h := s.back[0]
			s.back = slices.Delete(s.back, 0, 1)
			s.run(h)
			h.turn <- struct{}{}
			continue
		}
		kind, ok := s.nextKind()
		if !ok {
			s.makeRoom(shakeWhole)
			s.makeRoom(shakeResume)
			break
		}
		go s.take(kind).shake()
	}
	s.look()
}

// nextKind returns which kind's turn it is to begin: not that of the latest, if both can. s.mu is held.
func (s *shakes) nextKind() (kind shakeKind, ok bool) {
	if other := shakeKinds - 1 - s.latest; s.mayBegin(other) {
		return other, true
	}
	return s.latest, s.mayBegin(s.latest)
}

// mayBegin reports whether one of a kind can begin. s.mu is held.
func (s *shakes) mayBegin(kind shakeKind) bool {
	l := &s.lines[kind]
	most, all := s.room()
	return l.all.Len() > 0 && l.begun < most && s.begun < all
}

func (s *shakes) run(h *shake) {
	h.since = s.e.now()
	s.running = append(s.running, h)
}

// take returns the next one of a line, which has begun. s.mu is held.
func (s *shakes) take(kind shakeKind) *shake {
	l := &s.lines[kind]
	j := l.pop(s.newestFirst(l))
	h := &shake{e: s.e, c: j.c, source: j.source, kind: kind, turn: make(chan struct{}, 1)}
	s.begun++
	l.begun++
	h.source.begun++
	s.latest = kind
	s.run(h)
	return h
}

// newestFirst reports whether those that came last are the next to begin. s.mu is held.
func (s *shakes) newestFirst(l *shakeLine) bool { return l.control.Overloaded() || s.stalled(l) }

// stalled reports whether a line does not move because clients that stopped in the middle have all its room, and its oldest has
// waited for as long as these are waited for. More such clients probably stand at the front, so the newest goes next: its
// client is the likeliest to go on. s.mu is held.
func (s *shakes) stalled(l *shakeLine) bool {
	most, all := s.room()
	return (l.begun+1 >= most || s.begun+1 >= all) && int64(l.oldest(s.e.now())) >= patientShake
}

// mostPassed bounds for how many sources, one after the other, makeRoom looks whether they get room.
const mostPassed = 16

// makeRoom ends a handshake that waits for its client, if those of a kind cannot begin. If that kind has all the room it
// may have, one of the same kind is ended. It is one of the address that has most, without patience if the
// address that gets the place has fewer then, too. s.mu is held.
func (s *shakes) makeRoom(kind shakeKind) {
	l := &s.lines[kind]
	if l.all.Len() == 0 || s.mayBegin(kind) || s.given >= s.queued() {
		return
	}
	most, _ := s.room()
	h := s.mostWaiting(func(h *shake) bool { return l.begun < most || h.kind == kind })
	if h != nil && (s.e.now()-h.since >= patientShake || s.getsPlace(l, h.source)) {
		s.giveUp(h)
	}
}

// mostWaiting returns one of those that wait for their clients, of the source with most handshakes the one that has waited
// longest; nil if there is none. s.mu is held.
func (s *shakes) mostWaiting(may func(*shake) bool) (most *shake) {
	for _, h := range s.waiting {
		if may(h) && (most == nil || h.source.begun > most.source.begun) {
			most = h
		}
	}
	return most
}

// giveUp ends a handshake that waits for its client. s.mu is held.
func (s *shakes) giveUp(h *shake) {
	s.waiting = remove(s.waiting, h)
	h.given = true
	h.source.begun--
	s.given++
	h.c.loop.post(message{kind: msgLook, conn: h.c})
}

// getsPlace reports whether the next in line gets a place from the source of most handshakes at once. Sources with about as
// many are passed over. s.mu is held.
func (s *shakes) getsPlace(l *shakeLine, from *shakeSource) bool {
	newest := s.newestFirst(l)
	for range min(mostPassed, l.turns.Len()) {
		src := l.next(newest)
		if src.begun+1 < from.begun {
			return true
		}
		l.pass(src, newest)
	}
	return false
}

// look starts the timer for judge, if handshakes wait for a processor. s.mu is held.
func (s *shakes) look() {
	if s.watched || len(s.back) == 0 && s.queued() == 0 {
		return
	}
	s.watched = true
	if s.watch == nil {
		s.watch = time.AfterFunc(lookAtShakes, s.judge)
	} else {
		s.watch.Reset(lookAtShakes)
	}
}

const lookAtShakes = 10 * time.Millisecond

// judge is called by the timer: it no longer counts handshakes that block, and closes connections that have waited too long.
func (s *shakes) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	now := s.e.now()
	s.running = slices.DeleteFunc(s.running, func(h *shake) bool { return now-h.since >= longShake })
	for kind := range s.lines {
		s.judgeLine(&s.lines[kind], now)
	}
	s.next()
}

// judgeLine closes the connections that have waited too long in a line. s.mu is held.
func (s *shakes) judgeLine(l *shakeLine, now int64) {
	if l.control.Target() <= 0 {
		return
	}
	l.control.Look(now, l.oldest(now), l.all.Len(), int(s.e.conns.Load()))
	for l.all.Len() > 0 && l.control.Refuse(now, l.oldest(now)) {
		j := l.all.Front().Value.(*shakeJob)
		l.remove(j)
		s.forget(j.source)
		s.e.noteTLS(admission.HandshakeQueue, j.c, "overloaded: connections that wait too long for their TLS handshakes are closed", nil)
		j.c.flags |= flagCloseNow
		j.c.askClose()
	}
}

// pause gives the processor of h, which is to wait for its client, to others.
func (s *shakes) pause(h *shake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(h)
	h.since = s.e.now()
	s.waiting = append(s.waiting, h)
	s.leave(h)
}

// goOn waits until h has a processor again. It reports false if it was given up for others.
func (s *shakes) goOn(h *shake) bool {
	s.mu.Lock()
	s.waiting = remove(s.waiting, h)
	if h.given {
		s.run(h) // it only has to end
		s.mu.Unlock()
		return false
	}
	s.back = append(s.back, h)
	s.next()
	s.mu.Unlock()
	<-h.turn
	return true
}

// end is called when h is over.
func (s *shakes) end(h *shake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(h)
	s.begun--
	s.lines[h.kind].begun--
	if h.given {
		s.given--
	} else {
		h.source.begun--
	}
	s.forget(h.source)
	s.leave(h)
}

// leave gives the processor of h to another handshake. If there is only one processor and the handshakes have had their
// time, a loop gets it first: else one goroutine would run after the other and nobody look at the sockets, which the
// runtime does when there is nothing to run, or every 10 ms. s.mu is held.
func (s *shakes) leave(h *shake) {
	if s.only && len(s.back)+s.queued() > 0 && s.e.now() >= s.until {
		s.look() // in case the loop ends
		h.c.loop.post(message{kind: msgShake})
		return
	}
	s.next()
}

// turn is called when a loop has served what there was, which took so many ns. Handshakes have as long from now on, and at
// least one of them has a turn.
func (s *shakes) turn(now, took int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = now + took
	s.next()
}

func (s *shakes) stop(h *shake) { s.running = remove(s.running, h) }

func remove(from []*shake, h *shake) []*shake {
	if i := slices.Index(from, h); i >= 0 {
		return slices.Delete(from, i, i+1)
	}
	return from
}

// counts returns how many have begun, and how many are in line.
func (s *shakes) counts() (begun, queued int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun, s.queued()
}
