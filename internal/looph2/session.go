//go:build linux

package looph2

import (
	"crypto/tls"
	"errors"
	"math"
	"net"
	"runtime"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/request"
)

const (
	// smallBody is the largest body, in bytes, that is gathered for its action.
	smallBody = 64 << 10
	// maxTurnOutput is the number of bytes of frames that a turn gathers before they are sent.
	maxTurnOutput = 64 << 10
	// wholeAnswer is the largest body of an answer, in bytes, that is not divided at the end of a turn. A divided body would be
	// held and charged until the next turn.
	wholeAnswer = 128 << 10
	// streamRoom is the maximum number of bytes of a streamed answer that wait to be sent.
	streamRoom = 32 << 10
	// tightShare: windows do not grow while tightShare eighths of the budget are held, or while a request waits for room.
	tightShare = 6
	// windowShare: windows do not grow beyond the budget divided by windowShare. A body that waits for room may occupy its
	// entire window.
	windowShare = 64
)

// A visit is a call of Data.
type visit struct {
	request.Visit
	yields bool // other connections have their turn before the next visit, however short this one was
}

func (v *visit) begin() {
	wary := uint8(0)
	if v.Over {
		wary = 1
	}
	*v = visit{Visit: request.BeginVisit(&wary)}
}

// A session is the state of a connection: Conn.Proto. All fields except those that mu guards belong to the goroutine that
// drives the loop.
type session struct {
	h  *Handler
	c  *engine.Conn
	h2 http2.Conn

	local net.Addr // the server's side

	d       *engine.Driver // during a call
	upgrade *Upgrade       // the request of HTTP/1.1 that is answered next, nil for none

	since     int64 // when the connection began, or its last stream ended
	partial   int64 // arrival of an incomplete frame, 0 for none
	block     int64 // arrival of an incomplete field block, 0 for none
	charged   int64 // bytes charged to the connection, see chargeTables
	movedAt   int64 // the time of the last report to its account that the client is active
	accounts  memory.AccountSet
	judged    int64 // when slow clients were last judged
	sent      int64 // bytes of answers' bodies
	opened    int64 // of these, beyond the initial windows of their streams, or of answers that are sent in full
	taking    taking
	opening   taking
	bodies    int // streams whose bodies are gathered
	served    int
	visit     visit
	yields    bool // goroutines that read bodies run before the loop continues
	rested    bool // has freed the memory that an idle connection does not need
	goodbye   goodbye
	goodbyeAt int64
	abuser    *abuser // its client sent too much, see abuse.go
	untaken   int64   // bytes of complete answers that wait for the client's windows or the socket
	backlog   *backlog

	mu        sync.Mutex
	inbox     []*stream // streams with changes for the loop, once each, see notify
	uncharged int       // bytes of complete answers of streams in the inbox that are not charged
	woken     bool      // the loop has been woken for the inbox
	over      bool      // the connection has ended
}

// Open begins HTTP/2 on a connection. The result serves it from then on, see engine.Conn.Switch.
func (h *Handler) Open(d *engine.Driver, c *engine.Conn) engine.Protocol {
	return h.open(d, c)
}

func (h *Handler) open(d *engine.Driver, c *engine.Conn) *session {
	s := &session{h: h, c: c, since: d.Now(), judged: d.Now(), served: int(c.Count)}
	c.Notes |= engine.Parts
	c.Count = 0 // from now on the engine counts requests there
	s.local = h.localOf(c.LocalAddr())
	s.h2.Init(&h.limits, &scratchOf(d).pool, d.Out, d.Now())
	d.Out, s.h2.Out = s.h2.Out, nil
	if prohibited(c.Suite()) {
		s.h2.Prohibit()
	}
	if h.offenders.has(s.source(), s.since) {
		s.h2.Distrust()
	}
	return s
}

// Data reads input, answers requests, and sends as much as windows allow.
func (s *session) Data(d *engine.Driver, _ *engine.Conn, in []byte) (consumed int) {
	s.beginTurn(d)
	consumed, mine := s.work(in)
	if !mine {
		scratchOf(d).count.Flush(d)
		return 0
	}
	switch more := s.endTurn(consumed, len(in)); {
	case more && s.visit.yields:
		d.Later()
	case more:
		d.More()
	}
	return consumed
}

// End does nothing: the client cannot open windows any more, and Closed ends the streams.
func (s *session) End(*engine.Driver, *engine.Conn) {}

// Timeout does the work whose time has arrived.
func (s *session) Timeout(d *engine.Driver, c *engine.Conn, in []byte) {
	s.beginTurn(d)
	s.expire()
	if s.endTurn(0, len(in)) {
		c.Wake()
	}
}

// Evicted ends a connection that holds too much.
func (s *session) Evicted(d *engine.Driver, _ *engine.Conn) {
	s.beginTurn(d)
	s.h2.GoAway(true)
	s.h2.DropBlock()
	s.end() // frees the streams' memory before the connection has lingered
	d.Out, s.h2.Out = s.h2.Out, nil
}

// Unsent implements [engine.Protocol]: frames are not taken back, since they are counted in the windows.
func (s *session) Unsent(int) int { return 0 }

// Pended implements [engine.Protocol]: a session requests further calls itself.
func (s *session) Pended(int64) bool { return false }

// Blocked is called when another driver takes the loop from an action, or the action gives it up.
func (s *session) Blocked(d *engine.Driver, _ int64, collected bool) (waits bool) {
	return scratchOf(d).wire.detached(collected)
}

// Abandoned answers for an action that ended by runtime.Goexit, or by a panic of code that surrounds it. The connection may
// belong to another driver.
func (s *session) Abandoned(d *engine.Driver) {
	sc := scratchOf(d)
	sc.count.Flush(d)
	x := sc.wire
	x.d, x.runs = nil, away
	if !d.Inline() || !x.Call.Hooked() {
		x.giveUpOn()
		return
	}
	// A loop cannot be taken over here, so user code runs on another goroutine.
	go func() {
		defer x.h.recovered()
		x.giveUpOn()
	}()
}

// Closed is called when the connection is over.
func (s *session) Closed() { s.end() }

// beginTurn lends the driver's memory to the session.
func (s *session) beginTurn(d *engine.Driver) {
	sc := scratchOf(d)
	s.d = d
	s.h2.Adopt(&sc.pool)
	s.h2.Out, d.Out = d.Out, nil
	s.h2.Now = d.Now()
	sc.count.On, sc.count.Since = s.h.server.Counting.Load(), d.Arrived()
}

// work processes input, the inbox and output. mine is false when the connection belongs to another driver.
func (s *session) work(in []byte) (consumed int, mine bool) {
	if s.abuser != nil {
		if s.d.Draining() {
			s.closeAbuser()
		}
		return len(in), true
	}
	if b := &s.h.server.Budget; (*b).Bound() > 0 {
		s.h2.Tight = (*b).Held() > (*b).Bound()*tightShare/8 || s.h.server.Budget.Waiting() > 0
		s.h2.MostWindow = int(min(max((*b).Bound()/windowShare, 1), math.MaxInt32))
	}
	s.collect()
	if s.d.Now()-s.judged >= s.h.tick {
		s.judge()
	}
	if s.upgrade != nil {
		if over, mine := s.beginUpgraded(); over || !mine {
			return len(in), mine
		}
	}
	spent := s.h2.Spent()
	for s.visit.begin(); len(s.h2.Out) < maxTurnOutput; {
		if s.visit.Due() && consumed < len(in) && s.d.Inline() && s.visit.CheckTime(s.d.Clock(), s.d.VisitTime()) {
			break
		}
		if (s.visit.yields || s.h2.Spent()-spent >= uint32(s.h.limits.CallTokens)) && consumed < len(in) && s.d.Inline() {
			s.visit.yields = true
			break
		}
		begin := len(s.h2.Out)
		n, ev, err := s.h2.Next(in[consumed:])
		consumed += n
		if err != nil {
			s.fail(err, begin)
			return len(in), true
		}
		if ev.Kind == http2.NeedMore {
			break
		}
		if !s.event(&ev, consumed) {
			return 0, false
		}
	}
	if s.bodies > 0 {
		s.beginBodies()
	}
	s.pump()
	s.goOn()
	return consumed, true
}

// endTurn returns the memory that beginTurn has lent, and schedules the next turn; had is the number of bytes of input in this
// turn. It reports whether more output is ready.
func (s *session) endTurn(consumed, had int) (more bool) {
	d := s.d
	if s.yields {
		s.yields = false
		runtime.Gosched()
	}
	s.recordArrival(consumed, had-consumed)
	s.part()
	full := len(s.h2.Out) >= maxTurnOutput
	st, _ := s.h2.NextSender()
	d.Out, s.h2.Out = s.h2.Out, nil
	scratchOf(d).count.Flush(d)
	s.d = nil
	left := consumed < had
	return (full || st != nil || s.visit.Over && left || s.visit.yields && left) && s.abuser == nil
}

// fail ends a connection whose client broke the protocol, or sent too much that serves no request. The output from byte begin
// on informs the client.
func (s *session) fail(err error, begin int) {
	s.h.server.Refused.Add(1)
	var e http2.Error
	if errors.As(err, &e) && e.Reason() != 0 {
		r := reasonOf(e.Reason())
		if n, due := s.h.server.Shed.Note(r); due {
			s.h.server.Log.Warn("HTTP/2 connections ended: their clients did too much that serves no request",
				"reason", e.Reason().String(), "latest", s.c.RemoteAddr(), "count", n)
		}
		s.refuseAbuser(begin, e.Reason())
		return
	}
	if e.Code() == http2.InadequateSecurity {
		if n, due := s.h.server.Shed.Note(admission.H2Security); due {
			s.h.server.Log.Warn("HTTP/2 connections ended: their clients have agreed to a cipher suite that it prohibits",
				"suite", tls.CipherSuiteName(s.c.Suite()), "latest", s.c.RemoteAddr(), "count", n)
		}
	}
	s.goodbye = ended
	s.c.CloseLingering()
}

// prohibited reports whether RFC 9113, appendix A, prohibits a cipher suite of TLS 1.2; 0 stands for none. It prohibits all of
// package crypto/tls, except those with forward secrecy and authenticated encryption.
func prohibited(suite uint16) bool {
	switch suite {
	case 0, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return false
	}
	return true
}

// event serves an event. It is false when the connection belongs to another driver now.
func (s *session) event(ev *http2.Event, consumed int) bool {
	switch ev.Kind {
	case http2.RequestBegun:
		own := newStream(s, ev.Stream)
		own.kind = kindOf(ev.Request.Method(), ev.Request.Protocol())
		s.served++
		s.d.Began(1)
		s.rested = false
		if s.ends() {
			s.sayGoodbye()
		}
		if ev.End {
			return s.serve(own, ev.Request, nil, consumed)
		}
		ev.Request.CopyTo(&own.req)
		own.begun = s.d.Arrived()
		n := own.req.ContentLength
		if own.req.Status != 0 {
			own.intake.on(refuse)
			return s.serve(own, &own.req, nil, consumed)
		}
		if own.kind == tunnel || own.req.Expect100 || n > smallBody || n > s.h.server.Pipeline.LeastBody() {
			s.submit(own)
			return true
		}
		own.intake.on(gather)
		s.bodies++
	case http2.BodyData, http2.BodyTrailers:
		own, _ := ev.Stream.Owner.(*stream)
		switch {
		case own == nil:
			s.h2.Consumed(ev.Stream, len(ev.Data))
		case own.intake == gathering:
			return s.gather(own, ev, consumed)
		default:
			s.arrive(own, ev)
		}
	case http2.StreamOver:
		if own, _ := ev.Stream.Owner.(*stream); own != nil {
			s.drop(own)
		}
	}
	return true
}

// gather stores a piece of a body that is gathered for its action.
func (s *session) gather(own *stream, ev *http2.Event, consumed int) bool {
	body := ev.Data
	own.came += int64(len(body))
	if ev.Trailers != nil {
		s.mu.Lock()
		own.keepTrailers(ev.Trailers)
		s.mu.Unlock()
	}
	if len(own.here) > 0 || !ev.End {
		own.here = append(own.here, body...)
		body = own.here
	}
	s.h2.Consumed(ev.Stream, len(ev.Data))
	switch {
	case ev.End:
		s.endGathering(own, complete)
		return s.serve(own, &own.req, body, consumed)
	case len(own.here) > smallBody:
		s.beginEarly(own)
		return true
	}
	s.mu.Lock()
	own.holdInput()
	s.mu.Unlock()
	return true
}

// beginBodies begins the actions whose bodies have not arrived entirely and may not for long: a client may send an unannounced
// body only after the answer has begun.
func (s *session) beginBodies() {
	var early []*stream
	for st := range s.h2.Streams {
		own, _ := st.Owner.(*stream)
		if own != nil && own.intake == gathering && own.held[0] == 0 { // charges the head, also before any of the body has arrived
			s.mu.Lock()
			own.holdInput()
			s.mu.Unlock()
		}
		if own != nil && own.intake == gathering && (own.req.ContentLength < 0 || s.d.Now()-own.begun >= gatherTime) {
			early = append(early, own)
		}
	}
	for _, own := range early { // beginEarly may end the connection
		s.beginEarly(own)
	}
}

// gatherTime is the time, in ns, for which an action waits for a small announced body before it begins without the rest.
const gatherTime = int64(50e6)

// beginEarly begins an action that reads the rest of its body while it arrives.
func (s *session) beginEarly(own *stream) {
	s.bodies--
	s.submit(own)
}

// endGathering ends the gathering of a body by an event of its intake.
func (s *session) endGathering(own *stream, e intakeEvent) {
	own.intake.on(e)
	s.bodies--
}

// notify adds the stream to the inbox and wakes the loop. s.mu is held.
func (s *session) notify(own *stream) {
	if own.notified {
		return
	}
	if s.over {
		if own.action == returned {
			own.finalize()
		}
		return
	}
	own.notified = true
	s.inbox = append(s.inbox, own)
	if !s.woken {
		s.woken = true
		s.c.Wake()
	}
}

// collect processes the streams in the inbox.
func (s *session) collect() {
	s.mu.Lock()
	notified := s.inbox
	s.inbox, s.woken = nil, false
	s.mu.Unlock()
	for _, own := range notified {
		s.handleNotified(own)
	}
}

// end drops all streams, because the connection has ended.
func (s *session) end() {
	s.charge(0)
	s.mu.Lock()
	s.over = true
	s.inbox = nil
	s.mu.Unlock()
	s.backlog = nil
	for st := range s.h2.Streams {
		own, _ := st.Owner.(*stream)
		if own == nil {
			continue
		}
		own.freeRest()
		s.mu.Lock()
		own.notified = false
		own.setCanceled()
		if a := own.action; a == idle || a == postponed || a == returned {
			own.finalize()
		}
		s.mu.Unlock()
		own.cancelAll()
	}
}
