//go:build linux

package looph2

import (
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

const (
	// smallBody is the maximum size, in bytes, of a body that is buffered for its action.
	smallBody = 64 << 10
	// maxTurnOutput is the number of bytes of frames that a turn buffers before they are sent.
	maxTurnOutput = 64 << 10
	// wholeAnswer is the maximum size, in bytes, of a body that is not split at the end of a turn: the other part would be held
	// until the next turn, and charged.
	wholeAnswer = 128 << 10
	// streamRoom is the number of bytes that a streamed response may be ahead of its client's windows.
	streamRoom = 32 << 10
	// tightShare: windows do not grow while that many eighths of the budget are held, or while an account waits for memory.
	tightShare = 6
	// windowShare is the divisor of the budget that limits windows, since a body that waits for memory may fill its window.
	windowShare = 64
)

// A session is the state of a connection: Conn.Proto. All fields except those guarded by mu belong to the driver of the loop.
type session struct {
	h  *Handler
	c  *engine.Conn
	h2 http2.Conn

	local net.Addr // the server's address

	// Of the current call.
	sc *Scratch
	d  *engine.Driver

	since     int64 // start of the connection, or end of the last stream: the start of its idle time
	partial   int64 // time since which a frame is incomplete, 0 for none
	block     int64 // time since which a field block is incomplete
	charged   int64 // bytes charged to the connection, see chargeTables
	movedAt   int64 // time at which its account was last told of the client's activity
	group     admission.Group
	prompt    atomic.Bool // its client has read a large response at once, see mustAsk
	awaiting  atomic.Int64
	judged    int64 // time of the last judgement of slow clients
	sent      int64 // bytes of response bodies sent
	opened    int64 // of these, bytes beyond the streams' initial windows, or of responses that are sent completely
	taking    taking
	opening   taking
	bodies    int // streams whose bodies are buffered
	served    int
	visit     visit
	yields    bool // readers of bodies are scheduled first
	rested    bool // it has freed memory that an idle connection does not need
	goodbye   goodbye
	goodbyeAt int64
	calm      *calm // its client exceeded a limit, see calm.go
	untaken   int64 // bytes of complete responses that wait for windows or for the socket
	backlog   *backlog

	mu     sync.Mutex
	mail   []*stream // streams with news for the loop, once each
	mailed int       // uncharged bytes of complete responses that wait for the loop
	posted bool      // the loop has been woken for them
	over   bool      // the connection has closed
}

// open begins a connection.
func (h *Handler) open(sc *Scratch, d *engine.Driver, c *engine.Conn) *session {
	s := &session{h: h, c: c, sc: sc, d: d, since: d.Now(), judged: d.Now()}
	c.Proto = s
	s.local = h.localOf(c.LocalAddr())
	s.h2.Init(&h.limits, &sc.pool, d.Out, d.Now())
	d.Out = nil
	if prohibited(c.Suite()) {
		s.h2.Prohibit()
	}
	if h.offenders.has(s.source(), s.since) {
		s.h2.Distrust()
	}
	sc.count.begin(h, d)
	return s
}

// beginTurn lends the driver's state to the session.
func (s *session) beginTurn(sc *Scratch, d *engine.Driver) {
	s.sc, s.d = sc, d
	s.h2.Adopt(&sc.pool)
	s.h2.Out, d.Out = d.Out, nil
	s.h2.Now = d.Now()
	sc.count.begin(s.h, d)
}

// work does the work of a turn. mine is false when another driver has the connection.
func (s *session) work(in []byte) (consumed int, mine bool) {
	if s.calm != nil {
		if s.d.Draining() {
			s.endCalm()
		}
		return len(in), true
	}
	if b := &s.h.server.Budget; (*b).Bound() > 0 {
		s.h2.Tight = (*b).Held() > (*b).Bound()*tightShare/8 || s.h.server.Holders.Waiting() > 0
		s.h2.MostWindow = int(min(max((*b).Bound()/windowShare, 1), math.MaxInt32))
	}
	s.collect()
	if s.d.Now()-s.judged >= s.h.tick {
		s.judge()
	}
	spent := s.h2.Spent()
	for s.visit.begin(); len(s.h2.Out) < maxTurnOutput; {
		if s.visit.due() && consumed < len(in) && s.d.Inline() && s.visit.look(s.d.Clock(), s.d.VisitTime()) {
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

// endTurn returns the driver's state, and schedules the next turn; had is the number of bytes of input. It reports whether
// there is more to send already.
func (s *session) endTurn(consumed, had int) (more bool) {
	d := s.d
	if s.yields {
		s.yields = false
		runtime.Gosched()
	}
	s.note(consumed, had-consumed)
	s.part()
	full := len(s.h2.Out) >= maxTurnOutput
	st, _ := s.h2.Turn()
	d.Out, s.h2.Out = s.h2.Out, nil
	s.sc.flushCount(d)
	s.sc, s.d = nil, nil
	left := consumed < had
	return (full || st != nil || s.visit.over && left || s.visit.yields && left) && s.calm == nil
}

// fail ends a connection whose client violated the protocol or exceeded a limit on frames. The output from byte begin on tells
// the client.
func (s *session) fail(err error, begin int) {
	s.h.server.Refused.Add(1)
	var e http2.Error
	if errors.As(err, &e) && e.Reason() != 0 {
		r := reasonOf(e.Reason())
		if n, due := s.h.server.Shed.Note(r); due {
			s.h.server.Log.Warn("HTTP/2 connections ended: their clients did too much that serves no request",
				"reason", e.Reason().String(), "latest", s.c.RemoteAddr(), "count", n)
		}
		s.calmDown(begin, e.Reason())
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

// prohibited reports whether a cipher suite of TLS 1.2, 0 for none, is one of those in RFC 9113, appendix A: all suites of
// package crypto/tls without forward secrecy or authenticated encryption.
func prohibited(suite uint16) bool {
	switch suite {
	case 0, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return false
	}
	return true
}

// event processes an event. It returns false when another driver has the connection.
func (s *session) event(ev *http2.Event, consumed int) bool {
	switch ev.Kind {
	case http2.RequestBegun:
		own := newStream(s, ev.Stream)
		own.headOnly = string(ev.Request.Method()) == http.MethodHead
		own.tunnel = len(ev.Request.Protocol()) > 0
		s.served++
		s.d.Began(1)
		s.rested = false
		if s.ends() {
			s.sayGoodbye()
		}
		if ev.End {
			return s.serve(own, ev.Request, nil, consumed)
		}
		own.bodied = true
		ev.Request.CopyTo(&own.req)
		own.begun = s.d.Arrived()
		n := own.req.ContentLength
		if own.req.Status != 0 {
			return s.serve(own, &own.req, nil, consumed)
		}
		if own.tunnel || own.req.Expect100 || n > smallBody || n > s.h.server.Pipeline.LeastBody() {
			s.submit(own, true)
			return true
		}
		own.gathering = true
		s.bodies++
	case http2.BodyData, http2.BodyTrailers:
		own, _ := ev.Stream.Owner.(*stream)
		switch {
		case own == nil || own.dropped:
			s.h2.Consumed(ev.Stream, len(ev.Data))
		case own.gathering:
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

// gather buffers a piece of a body for its action.
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
		own.gathering = false
		s.bodies--
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

// beginBodies starts actions whose bodies are incomplete and may stay so for long: a client may send a body without a length
// only when the response has begun.
func (s *session) beginBodies() {
	var early []*stream
	for st := range s.h2.Streams {
		own, _ := st.Owner.(*stream)
		if own != nil && own.gathering && own.held[0] == 0 { // its head, though no data of the body has arrived
			s.mu.Lock()
			own.holdInput()
			s.mu.Unlock()
		}
		if own != nil && own.gathering && (own.req.ContentLength < 0 || s.d.Now()-own.begun >= gatherTime) {
			early = append(early, own)
		}
	}
	for _, own := range early { // which may end the iteration's stream
		s.beginEarly(own)
	}
}

// gatherTime is the time, in ns, for which the rest of a small body with a length is awaited before its action begins without
// it.
const gatherTime = int64(50e6)

// beginEarly starts an action that reads the rest of its body while it arrives.
func (s *session) beginEarly(own *stream) {
	own.gathering = false
	s.bodies--
	s.submit(own, true)
}

// post queues the stream's news for the loop. s.mu is held.
func (s *session) post(own *stream) {
	if own.posted {
		return
	}
	if s.over {
		if own.returned {
			own.finalize()
		}
		return
	}
	own.posted = true
	s.mail = append(s.mail, own)
	if !s.posted {
		s.posted = true
		s.c.Wake()
	}
}

// collect processes the news of streams.
func (s *session) collect() {
	s.mu.Lock()
	mail := s.mail
	s.mail, s.posted = nil, false
	s.mu.Unlock()
	for _, own := range mail {
		s.take(own)
	}
}

// end drops all streams when the connection has closed.
func (s *session) end() {
	s.charge(0)
	s.mu.Lock()
	s.over = true
	s.mail = nil
	s.mu.Unlock()
	s.backlog = nil
	for st := range s.h2.Streams {
		own, _ := st.Owner.(*stream)
		if own == nil {
			continue
		}
		own.freeRest()
		running := own.running && !own.ended && !own.putOff
		s.mu.Lock()
		own.posted = false
		own.setCanceled()
		if !running || own.returned {
			own.finalize()
		}
		s.mu.Unlock()
		own.cancelAll()
	}
}
