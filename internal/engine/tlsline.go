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

// A handshake costs as much as a hundred requests, and any client may ask for any number of them. So handshakes wait in a line
// of their own, and use at most half of the processors: the others serve open connections.
//
//	line ──▶ running ◀──▶ waiting for its client ──▶ over
//
// A handshake has a processor only while it computes. Handshakes that continue have precedence over new ones. Application code
// may block in a way that tlscalls.go does not notice. Therefore a handshake that keeps its processor for longer than any
// computation takes does not count as running until that code returns.
//
// Clients that resume a session have a line of their own. Each line has its own overload control. While both lines have
// handshakes, they alternate: a flood of full handshakes does not delay clients that resume a session, and a flood of made-up
// sessions, which cost their sender nothing, takes at most half of the processor time.
//
// The memory for handshakes bounds the number of handshakes that have begun and are not over. Neither kind can use all of this
// memory. At the bound, the engine ends a handshake that waits for its client: the longest-waiting one of the address with the
// most handshakes. So clients that stop in the middle of a handshake displace handshakes of other addresses only until these
// addresses have about as many handshakes.
type handshakes struct {
	e    *Engine
	most int  // processors for handshakes
	only bool // there is only one processor: handshakes have it until the time until, then the loop has a turn

	mu      sync.Mutex
	running []*handshake
	back    []*handshake // these wait for a processor to continue
	waiting []*handshake // these wait for their clients; the longest wait is first
	begun   int
	given   int // the number of begun handshakes that were given up and have not ended yet
	sources map[admission.AddressKey]*handshakeSource
	lines   [handshakeKinds]handshakeLine
	latest  handshakeKind // the kind that began last
	until   int64
	watch   *time.Timer
	watched bool
}

// A handshakeKind is the kind of handshake that a client requests. The handshake that follows may be of the other kind.
type handshakeKind uint8

const (
	handshakeWhole  handshakeKind = iota
	handshakeResume               // the ClientHello offers a session
	handshakeKinds
)

const (
	// handshakeMemory is the approximate memory of a handshake in bytes, until it is over.
	handshakeMemory = 40 << 10
	// handshakeLeft is the approximate number of bytes that a client still has to send after the server's flight.
	handshakeLeft = 100
	// Handshakes may use one part in handshakeShare of the budget. Each kind has a limit, which is at least minHandshakes.
	handshakeShare = 2
	minHandshakes  = 64
	// One part in handshakeReserve of the handshakes is reserved for each kind.
	handshakeReserve = 4

	// The times after which overload control refuses handshakes are handshakeTarget times as long as for requests. A refused
	// client comes back with a new handshake, so if many clients connect at once, each is served sooner by waiting than by coming
	// back.
	handshakeTarget = 20

	// longHandshake is the maximum time, in ns, for which a handshake counts as using its processor. It is about twenty times the
	// time that the slowest of the usual keys takes.
	longHandshake = int64(20 * time.Millisecond)
	// patientHandshake is the minimum time, in ns, to wait for a client before its handshake is ended to make room. A lost packet
	// is sent again after a second (RFC 6298, section 2.1).
	patientHandshake = int64(1500 * time.Millisecond)
)

func (s *handshakes) init(e *Engine) {
	s.e = e
	procs := runtime.GOMAXPROCS(0)
	s.most, s.only = max(procs/2, 1), procs == 1
	for kind := range handshakeKinds {
		s.lines[kind].kind = kind
		s.lines[kind].control = overload.NewQueue(handshakeTarget * e.cfg.QueueTarget)
	}
}

// room returns the maximum number of begun handshakes, of one kind and of both.
func (s *handshakes) room() (kind, all int) {
	bound := s.e.cfg.Budget.Bound()
	if bound <= 0 {
		return 1<<31 - 1, 1<<31 - 1
	}
	all = int(bound / handshakeShare / handshakeMemory)
	kind = max(all-all/handshakeReserve, minHandshakes)
	return kind, max(all, kind+minHandshakes/handshakeReserve)
}

// queued returns the number of handshakes in line. s.mu is held.
func (s *handshakes) queued() (n int) {
	for kind := range s.lines {
		n += s.lines[kind].all.Len()
	}
	return n
}

// kind returns the kind of handshake that the received ClientHello requests.
func (t *tlsState) kind() handshakeKind {
	if !t.on.Config.SessionTicketsDisabled && tlsmem.AsksToResume(t.records()) {
		return handshakeResume
	}
	return handshakeWhole
}

// submit appends c, which is away from its loop, to the line for its handshake.
func (s *handshakes) submit(c *Conn) {
	kind := c.secure().kind()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[kind].push(c, s.source(c), s.e.now())
	s.lines[kind].control.Arrived(overload.Idle, 1)
	s.next()
}

// next gives free processors to handshakes: first to those that continue, then to those in line. s.mu is held.
func (s *handshakes) next() {
	for len(s.running) < s.most {
		if len(s.back) > 0 {
			h := s.back[0]
			s.back = slices.Delete(s.back, 0, 1)
			s.run(h)
			h.begin <- struct{}{}
			continue
		}
		kind, ok := s.nextKind()
		if !ok {
			s.makeRoom(handshakeWhole)
			s.makeRoom(handshakeResume)
			break
		}
		go s.beginNext(kind).perform()
	}
	s.scheduleJudge()
}

// nextKind returns the kind of which a handshake begins next. If both kinds can begin, they alternate. s.mu is held.
func (s *handshakes) nextKind() (kind handshakeKind, ok bool) {
	if other := handshakeKinds - 1 - s.latest; s.mayBegin(other) {
		return other, true
	}
	return s.latest, s.mayBegin(s.latest)
}

// mayBegin reports whether a handshake of a kind can begin. s.mu is held.
func (s *handshakes) mayBegin(kind handshakeKind) bool {
	l := &s.lines[kind]
	most, all := s.room()
	return l.all.Len() > 0 && l.begun < most && s.begun < all
}

func (s *handshakes) run(h *handshake) {
	h.since = s.e.now()
	s.running = append(s.running, h)
}

// beginNext removes the next connection from a line and begins its handshake. s.mu is held.
func (s *handshakes) beginNext(kind handshakeKind) *handshake {
	l := &s.lines[kind]
	j := l.pop(s.newestFirst(l))
	h := &handshake{e: s.e, c: j.c, source: j.source, kind: kind, begin: make(chan struct{}, 1)}
	s.begun++
	l.begun++
	h.source.begun++
	s.latest = kind
	s.run(h)
	return h
}

// newestFirst reports whether the newest handshakes in the line begin first. s.mu is held.
func (s *handshakes) newestFirst(l *handshakeLine) bool {
	return l.control.Overloaded() || s.stalled(l)
}

// stalled reports whether a line does not move because clients that stopped in the middle of a handshake use all its room, and
// its oldest handshake has waited for at least patientHandshake. More such clients are probably at the front of the line. So the
// newest handshake begins next, because its client is the most likely to continue. s.mu is held.
func (s *handshakes) stalled(l *handshakeLine) bool {
	most, all := s.room()
	return (l.begun+1 >= most || s.begun+1 >= all) && int64(l.oldest(s.e.now())) >= patientHandshake
}

// maxPassed bounds the number of sources that displaces checks.
const maxPassed = 16

// makeRoom acts if handshakes of a kind are in line and none of them can begin. It ends a handshake that waits for its client, of
// the address with the most handshakes. At the limit of the kind, that is a handshake of the same kind. The handshake must have
// waited for patientHandshake, unless the address of the next handshake has clearly fewer handshakes. s.mu is held.
func (s *handshakes) makeRoom(kind handshakeKind) {
	l := &s.lines[kind]
	if l.all.Len() == 0 || s.mayBegin(kind) || s.given >= s.queued() {
		return
	}
	most, _ := s.room()
	h := s.maxWaiting(func(h *handshake) bool { return l.begun < most || h.kind == kind })
	if h != nil && (s.e.now()-h.since >= patientHandshake || s.displaces(l, h.source)) {
		s.giveUp(h)
	}
}

// maxWaiting returns the longest-waiting handshake of the source with the most handshakes, among those handshakes that wait for
// their client and for which may returns true. It returns nil if there is none. s.mu is held.
func (s *handshakes) maxWaiting(may func(*handshake) bool) (most *handshake) {
	for _, h := range s.waiting {
		if may(h) && (most == nil || h.source.begun > most.source.begun) {
			most = h
		}
	}
	return most
}

// giveUp ends a handshake that waits for its client. s.mu is held.
func (s *handshakes) giveUp(h *handshake) {
	s.waiting = remove(s.waiting, h)
	h.given = true
	h.source.begun--
	s.given++
	h.c.loop.post(message{kind: msgLook, conn: h.c})
}

// displaces reports whether the next handshake in line may at once displace a handshake of from, the source with the most
// handshakes. Sources in line with about as many handshakes lose their turn. s.mu is held.
func (s *handshakes) displaces(l *handshakeLine, from *handshakeSource) bool {
	newest := s.newestFirst(l)
	for range min(maxPassed, l.sources.Len()) {
		src := l.next(newest)
		if src.begun+1 < from.begun {
			return true
		}
		l.pass(src, newest)
	}
	return false
}

// scheduleJudge starts the timer for judge, if handshakes wait for a processor. s.mu is held.
func (s *handshakes) scheduleJudge() {
	if s.watched || len(s.back) == 0 && s.queued() == 0 {
		return
	}
	s.watched = true
	if s.watch == nil {
		s.watch = time.AfterFunc(lookAtHandshakes, s.judge)
	} else {
		s.watch.Reset(lookAtHandshakes)
	}
}

const lookAtHandshakes = 10 * time.Millisecond

// judge is called by the timer. It stops counting handshakes that block, and closes connections that have waited too long in
// line.
func (s *handshakes) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	now := s.e.now()
	s.running = slices.DeleteFunc(s.running, func(h *handshake) bool { return now-h.since >= longHandshake })
	for kind := range s.lines {
		s.judgeLine(&s.lines[kind], now)
	}
	s.next()
}

// judgeLine closes the connections that have waited too long in a line. s.mu is held.
func (s *handshakes) judgeLine(l *handshakeLine, now int64) {
	if l.control.Target() <= 0 {
		return
	}
	l.control.Look(now, l.oldest(now), l.all.Len(), int(s.e.conns.Load()))
	for l.all.Len() > 0 && l.control.Refuse(now, l.oldest(now)) {
		j := l.all.Front().Value.(*handshakeJob)
		l.remove(j)
		s.forget(j.source)
		s.e.noteTLS(admission.HandshakeQueue, j.c, "overloaded: connections that wait too long for their TLS handshakes are closed", nil)
		j.c.flags |= flagCloseNow
		j.c.askClose()
	}
}

// pause gives up the processor of h, which is about to wait for its client.
func (s *handshakes) pause(h *handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(h)
	h.since = s.e.now()
	s.waiting = append(s.waiting, h)
	s.leave(h)
}

// goOn waits until h has a processor again. It reports false if h was given up for others.
func (s *handshakes) goOn(h *handshake) bool {
	s.mu.Lock()
	s.waiting = remove(s.waiting, h)
	if h.given {
		s.run(h) // h still has to end
		s.mu.Unlock()
		return false
	}
	s.back = append(s.back, h)
	s.next()
	s.mu.Unlock()
	<-h.begin
	return true
}

// end ends the accounting of h, which has ended.
func (s *handshakes) end(h *handshake) {
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

// leave gives the processor of h to another handshake. If the machine has only one processor and the handshakes have used up
// their time, a loop gets the processor first. Otherwise handshakes would run one after another while no loop reads its sockets:
// the runtime polls the sockets only when it has nothing to run, or every 10 ms. s.mu is held.
func (s *handshakes) leave(h *handshake) {
	if s.only && len(s.back)+s.queued() > 0 && s.e.now() >= s.until {
		s.scheduleJudge() // in case the loop ends before it calls loopServed
		h.c.loop.post(message{kind: msgHandshake})
		return
	}
	s.next()
}

// loopServed is called when a loop has served its ready connections; took is the time that this took, in ns. From now on
// handshakes get the same time, and at least one of them runs.
func (s *handshakes) loopServed(now, took int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = now + took
	s.next()
}

func (s *handshakes) stop(h *handshake) { s.running = remove(s.running, h) }

func remove(from []*handshake, h *handshake) []*handshake {
	if i := slices.Index(from, h); i >= 0 {
		return slices.Delete(from, i, i+1)
	}
	return from
}

// counts returns how many handshakes have begun, and how many are in line.
func (s *handshakes) counts() (begun, queued int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun, s.queued()
}
