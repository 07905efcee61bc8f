//go:build linux

package engine

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A handshake costs as much as a hundred requests, of which a server may be asked for any number.
// So they have a line of their own, and at most half of the processors, the rest of which serve
// those who are connected:
//
//	line ──▶ running ◀──▶ waiting for its client ──▶ over
//
// A handshake has a processor only while it computes. Those that go on come before those that begin. One
// that keeps its processor for longer than any computation, because code of the application looks
// for a certificate, is not counted among them until it comes back.
//
// How many have begun is bounded by the memory they take. When no other can begin, those whose client has kept them
// waiting for longest are ended, so that clients who begin and do not go on keep nobody out.
type shakes struct {
	e    *Engine
	most int  // processors they may have
	only bool // that is all there are: until has the end of the time that handshakes have between two turns of a loop

	mu      sync.Mutex
	running []*shake
	back    []*shake // they wait for a processor to go on
	waiting []*shake // for their clients, the longest first
	begun   int
	line    jobQueue
	control admission.QueueControl
	until   int64
	watch   *time.Timer
	watched bool
}

const (
	// shakeMemory is about what a handshake takes, in bytes, until it is over.
	shakeMemory = 40 << 10
	// shakeShare is which part of the budget they may have, and leastShakes how many there
	// may be at the least.
	shakeShare  = 2
	leastShakes = 64

	// shakeTarget is how many times the target of requests a handshake may stand in line, and how many
	// times as long that line must stand: who is sent away comes back with another handshake, and a crowd that
	// connects at once is served sooner than it could come back.
	shakeTarget = 10

	// longShake is for how long, in ns, a handshake may have a processor: some twenty times what the
	// slowest of usual keys takes.
	longShake = int64(20 * time.Millisecond)
	// patientShake is how long a client is waited for at the least, in ns, before it is given up
	// for others: what was lost on the way is sent again after a second (RFC 6298, section 2.1).
	patientShake = int64(1500 * time.Millisecond)
)

func (s *shakes) init(e *Engine) {
	s.e = e
	procs := runtime.GOMAXPROCS(0)
	s.most, s.only = max(procs/2, 1), procs == 1
	s.control = admission.QueueControl{Target: shakeTarget * e.cfg.QueueTarget, Interval: shakeTarget * queueIntervals * e.cfg.QueueTarget}
}

// room returns how many may have begun. s.mu is held.
func (s *shakes) room() int {
	if bound := s.e.cfg.Budget.Bound(); bound > 0 {
		return max(int(bound/shakeShare/shakeMemory), leastShakes)
	}
	return 1<<31 - 1
}

// submit has the hands of c shaken, which is away from its loop, in its turn.
func (s *shakes) submit(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line.push(job{task{conn: c}, s.e.now()})
	s.control.Arrived(admission.New, 1)
	s.next()
}

// next gives free processors to those whose turn it is. s.mu is held.
func (s *shakes) next() {
	for len(s.running) < s.most {
		switch {
		case len(s.back) > 0:
			h := s.back[0]
			s.back = slices.Delete(s.back, 0, 1)
			s.run(h)
			h.turn <- struct{}{}
		case s.line.size > 0 && s.begun < s.room():
			s.begin()
		default:
			s.makeRoom()
			s.look()
			return
		}
	}
	s.look()
}

func (s *shakes) run(h *shake) {
	h.since = s.e.now()
	s.running = append(s.running, h)
}

// begin begins the next one of the line. s.mu is held.
func (s *shakes) begin() {
	j := s.line.popOldest
	if s.control.Overloaded() {
		j = s.line.popNewest
	}
	h := &shake{e: s.e, c: j().conn, turn: make(chan struct{}, 1)}
	s.begun++
	s.run(h)
	go h.shake()
}

// makeRoom ends the one that has waited for its client for longest, if others can not begin. s.mu
// is held.
func (s *shakes) makeRoom() {
	if s.line.size == 0 || len(s.waiting) == 0 || s.begun < s.room() {
		return
	}
	if h := s.waiting[0]; s.e.now()-h.since >= patientShake {
		s.waiting = slices.Delete(s.waiting, 0, 1)
		h.given = true
		h.c.loop.post(message{kind: msgLook, conn: h.c})
	}
}

// look sees to it that the line is looked at soon, if there is one. s.mu is held.
func (s *shakes) look() {
	if s.watched || len(s.back) == 0 && s.line.size == 0 {
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

// judge looks for what keeps the line waiting, and ends those who have waited too long.
func (s *shakes) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	now := s.e.now()
	s.running = slices.DeleteFunc(s.running, func(h *shake) bool { return now-h.since >= longShake })
	oldest := func() time.Duration {
		if s.line.size == 0 {
			return 0
		}
		return time.Duration(now - s.line.ring[s.line.first].since)
	}
	if s.control.Target > 0 {
		s.control.Look(now, oldest(), s.line.size, int(s.e.conns.Load()))
		for s.line.size > 0 && s.control.Refuse(now, oldest()) {
			c := s.line.popOldest().conn
			s.e.noteTLS(admission.HandshakeQueue, c, "overloaded: connections that wait too long for their TLS handshakes are closed", nil)
			c.flags |= flagCloseNow
			c.askClose()
		}
	}
	s.next()
}

// pause gives h's processor to others while it waits for its client.
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

// end says that h is over.
func (s *shakes) end(h *shake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(h)
	s.begun--
	s.leave(h)
}

// leave gives the processor of h to another. If there is only one, it does so by way of a loop when the handshakes have had
// their time: one goroutine after the other would run, and nothing look at the sockets, which the runtime does when there is
// nothing to run, or every 10 ms. s.mu is held.
func (s *shakes) leave(h *shake) {
	if s.only && len(s.back)+s.line.size > 0 && s.e.now() >= s.until {
		s.look() // in case the loop ends
		h.c.loop.post(message{kind: msgShake})
		return
	}
	s.next()
}

// turn gives free processors to those whose turn it is, when a loop has served what there was, which took so many
// ns: handshakes have as long then, and at least one its turn.
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
	return s.begun, s.line.size
}
