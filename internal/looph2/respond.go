//go:build linux

package looph2

import (
	"net/http"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// A pending answer is complete, and sending it has not begun.
type pending struct {
	answer  exchange.Answer
	body    []byte // in memory of its own
	length  int64  // as announced
	undated bool
	is      bool
	counts  *exchange.RouteCounts
	held    engine.HeldBody // the charge for body, none for a small one
	free    int             // bytes of a body that is not charged, see leave
}

func (p *pending) release() {
	p.answer.Release()
	p.held.Release()
}

var pendings = sync.Pool{New: func() any { return new(pending) }}

// maxUncharged is the maximum of session.uncharged, in bytes. The loop sends these answers at once, unless the socket is full.
const maxUncharged = 8 << 10

// setComplete stores a complete answer for the loop. s.mu is held.
func (own *stream) setComplete(p pending) {
	s := own.s
	switch n := cap(p.body); {
	case len(p.body) == 0:
	case s.uncharged+n <= maxUncharged:
		s.uncharged += n
		p.free = n
	default:
		if a := own.accountOf(); a != nil {
			a.BeginResponse(int64(len(p.body)))
			p.held = s.c.HoldBody(a, p.body)
		}
	}
	own.complete = pendings.Get().(*pending)
	*own.complete = p
}

// takeComplete removes and returns the complete answer. s.mu is held.
func (own *stream) takeComplete() (p pending) {
	if left := own.complete; left != nil {
		own.complete, p, *left = nil, *left, pending{}
		pendings.Put(left)
		own.s.uncharged -= p.free
	}
	return p
}

// dropComplete discards the complete answer. s.mu is held.
func (own *stream) dropComplete() {
	if p := own.takeComplete(); p.is {
		p.release()
	}
}

// A head is the head of an answer, or of an interim answer, that a stream's goroutine passes to the loop.
type head struct {
	status  int
	length  int64 // -1: unknown
	fields  [][2]string
	end     bool
	undated bool
}

// headOf copies the parts of an answer's head that are sent.
func headOf(a *exchange.Answer, length int64, undated bool) head {
	h := head{status: a.Status(), length: length, undated: undated || a.Dated()}
	for name, value := range a.Headers {
		h.fields = append(h.fields, [2]string{name, value})
	}
	return h
}

// field sends a field of an answer, unless it is a field of the connection or has no place in a 304.
func (s *session) field(status int, name, value string) {
	if exchange.OfConnection(name) || status == http.StatusNotModified && name == "Content-Type" {
		return
	}
	s.h2.Field(name, value)
}

// endFields sends the fields that every head has, and ends the head.
func (s *session) endFields(status int, length int64, undated, end bool) {
	if length >= 0 && exchange.BodyAllowed(status) {
		s.h2.ContentLength(length)
	}
	if !undated && status >= 200 {
		s.h2.Field("Date", s.date())
	}
	s.h2.EndHead(end)
}

// lengthOf returns the length that an answer announces, or -1 if the answer accepts another protocol (RFC 9110 section 9.3.6).
func (own *stream) lengthOf(status int, length int64) int64 {
	if own.kind == tunnel && status/100 == 2 {
		return -1
	}
	return length
}

// sendHead sends a head that the stream's goroutine has made.
func (s *session) sendHead(own *stream, h *head) {
	if !s.h2.BeginHead(own.st, h.status) {
		return
	}
	for _, f := range h.fields {
		s.field(h.status, f[0], f[1])
	}
	s.endFields(h.status, own.lengthOf(h.status, h.length), h.undated, h.end)
}

// respond sends a complete answer as far as there is room, and keeps the rest with the stream. x is the wire whose memory may
// contain the body, nil for an answer that no action made.
func (s *session) respond(own *stream, p *pending, x *Wire) {
	st, a, body := own.st, &p.answer, p.body
	p.length = own.lengthOf(a.Status(), p.length)
	if own.kind == headOnly || !exchange.BodyAllowed(a.Status()) {
		body = nil
	}
	if !s.h2.BeginHead(st, a.Status()) {
		p.release()
		return
	}
	for name, value := range a.Headers {
		s.field(a.Status(), name, value)
	}
	s.endFields(a.Status(), p.length, p.undated || a.Dated(), len(body) == 0)
	if len(body) == 0 {
		p.release()
		return
	}
	most := maxTurnOutput
	if len(body) <= wholeAnswer {
		most = maxTurnOutput + len(body)
	}
	n := min(s.h2.Room(st), len(body), max(most-len(s.h2.Out), 0))
	if n > 0 {
		s.h2.Data(st, body[:n], n == len(body))
		own.count(n, n == len(body))
	}
	own.left(int64(len(body) - n))
	if n == len(body) {
		p.release()
		return
	}
	if x != nil {
		body = x.keepBody(a, body)
	}
	if n == 0 && s.h2.Blocked(st) {
		s.visit.yields = true // the client does not want this answer yet
	}
	s.mu.Lock()
	own.resting = restings.Get().(*resting)
	own.rest, own.whole = body[n:], *a
	own.untaken = int64(len(body))
	s.untaken += own.untaken
	own.kept.Store(true)
	account := own.accountOf()
	account.BeginResponse(int64(len(own.rest)))
	if own.body = p.held; own.body == (engine.HeldBody{}) {
		own.body = s.c.HoldBody(account, body)
	}
	account.ReleaseReservation()
	s.mu.Unlock()
	if p.counts != nil {
		own.inFlight.Begin(s.h.server.Counting.Load(), p.counts)
	}
	s.h2.Want(st)
}

// keepBody returns the body of an answer in memory that outlives the request.
func (x *Wire) keepBody(a *exchange.Answer, body []byte) []byte {
	text := view.String(body)
	switch {
	case view.Within(text, x.State.Payload) && len(text) > 0 && cap(x.State.Payload) > exchange.KeptPayload:
		return x.Call.DetachBody(text)
	case view.Within(text, x.State.Payload), view.Within(text, x.State.Whole), view.Within(text, x.whole.Bytes):
		return append([]byte(nil), body...)
	case a.OwnsBody():
		return a.Own().Buf[:len(body)]
	}
	return body
}

// count counts sent bytes of the body. When an answer has been sent entirely, all of it counts as let out.
func (own *stream) count(n int, last bool) {
	before := max(own.sent-own.free, 0)
	own.sent += int64(n)
	own.s.sent += int64(n)
	own.s.opened += max(own.sent-own.free, 0) - before
	if last {
		own.s.opened += min(own.sent, own.free)
	}
}

// freeRest frees the unsent part of a complete answer.
func (own *stream) freeRest() {
	if !own.rests() {
		return
	}
	own.s.mu.Lock()
	own.dropRest()
	r := own.resting
	own.resting = &nothing
	own.s.mu.Unlock()
	own.s.untaken -= r.untaken
	r.inFlight.End()
	*r = resting{}
	restings.Put(r)
}

// dropRest frees the memory of the unsent part. s.mu is held.
func (own *stream) dropRest() {
	if r := own.resting; r != &nothing {
		r.body.Release()
		r.whole.Release()
		r.rest, r.body, r.whole = nil, engine.HeldBody{}, exchange.Answer{}
	}
}

// pump sends as much as windows allow, by priority.
func (s *session) pump() {
	for len(s.h2.Out) < maxTurnOutput {
		st, n := s.h2.NextSender()
		if st == nil {
			return
		}
		own := st.Owner.(*stream)
		if own.rests() {
			s.pumpRest(own, n)
		} else {
			s.pumpOut(own, n)
		}
	}
}

func (s *session) pumpRest(own *stream, n int) {
	s.mu.Lock()
	if own.answer.canceled() { // it is about to be cut
		s.mu.Unlock()
		s.h2.Enough(own.st)
		return
	}
	n = min(n, len(own.rest))
	last := n == len(own.rest)
	s.h2.Data(own.st, own.rest[:n], last)
	own.count(n, last)
	own.rest = own.rest[n:]
	own.progress(int64(n), int64(len(own.rest)))
	if last && own.account != nil {
		own.account.EndResponse()
	}
	s.mu.Unlock()
	if last {
		own.freeRest()
		s.h2.Enough(own.st)
		s.conclude(own)
	}
}

// pumpOut sends a piece of a streamed answer.
func (s *session) pumpOut(own *stream, n int) {
	s.mu.Lock()
	if own.answer.canceled() { // it is about to be cut
		s.mu.Unlock()
		s.h2.Enough(own.st)
		return
	}
	piece := own.out.first
	if own.out.len == 0 {
		piece = own.lent
	}
	n = min(n, len(piece))
	last := own.answer == finished && n == own.unsent()
	if n > 0 {
		s.h2.Data(own.st, piece[:n], last && len(own.trailers) == 0)
		own.count(n, last)
		if own.out.len > 0 {
			own.out.skip(n)
		} else {
			own.lent = own.lent[n:]
		}
		own.progress(int64(n), int64(own.unsent()))
		own.holdOutput()
	}
	left, state := own.unsent(), own.answer
	if len(own.lent) == 0 { // else the Write still waits
		own.hasMoved()
	}
	s.mu.Unlock()
	if left == 0 {
		s.h2.Enough(own.st)
	}
	switch {
	case left == 0 && state == aborted:
		s.h2.Reset(own.st, http2.InternalError)
		s.conclude(own)
	case last:
		s.endOut(own)
	}
}

// endOut ends an answer when all of its pieces have been sent.
func (s *session) endOut(own *stream) {
	s.mu.Lock()
	if own.answer != finished {
		s.mu.Unlock()
		return
	}
	own.answer.on(send)
	trailers := own.trailers
	s.mu.Unlock()
	switch st := own.st; {
	case st.Sent():
	case len(trailers) > 0:
		if s.h2.BeginTrailers(st) {
			for _, t := range trailers {
				s.h2.Field(t[0], t[1])
			}
			s.h2.EndTrailers()
		}
	default:
		s.h2.DataHeader(st, 0, true)
	}
	s.conclude(own)
}

// handleNotified processes the changes of a stream from the inbox.
func (s *session) handleNotified(own *stream) {
	s.mu.Lock()
	own.notified = false
	if own.action == freed {
		s.mu.Unlock()
		return
	}
	heads, consumed := own.takeLeft()
	p, noRoom, closing := own.takeComplete(), own.noRoom, own.closing
	left, lent := own.unsent(), len(own.lent)
	state, lapsed, unclaimed := own.answer, own.lapsed, own.in.unclaimed
	s.mu.Unlock()
	if closing {
		s.sayGoodbye()
	}
	if consumed > 0 {
		s.h2.Consumed(own.st, consumed)
	}
	if unclaimed {
		s.h2.Unclaimed(own.st)
	}
	for i := range heads {
		s.sendHead(own, &heads[i])
	}
	switch {
	case p.is:
		s.respond(own, &p, nil)
	case state.canceled(): // it is dropped, or about to be cut
	case state == aborted && (left == 0 || lapsed && s.h2.Blocked(own.st)): // the deadline has passed: the blocked rest is not sent
		s.h2.Reset(own.st, http2.InternalError)
	case left > 0: // also of an aborted answer: its client receives the part that was made
		if n := int64(lent - s.h2.Room(own.st)); n > 0 {
			own.left(n)
		}
		s.h2.Want(own.st)
	case state == finished:
		s.endOut(own)
		return
	}
	if noRoom {
		s.makeRoom(own)
		return
	}
	s.conclude(own)
}

// cut resets a stream whose client is too slow, or that was evicted.
func (s *session) cut(own *stream) {
	s.h2.Reset(own.st, http2.EnhanceYourCalm)
	s.drop(own)
}

// date returns the value of Date.
func (s *session) date() string {
	sc := scratchOf(s.d)
	if now := s.d.Unix(); now != sc.dated {
		sc.dated = now
		sc.date = time.Unix(now, 0).UTC().Format(http.TimeFormat)
	}
	return sc.date
}
