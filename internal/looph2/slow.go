//go:build linux

package looph2

import (
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The loop judges slow clients every Handler.tick: clients that send a body below Config.Limits.MinBodyRate over BodyTimeout, counting
// the time in which a Read waits for it, and clients that let out less than MinWriteRate over WriteTimeout. The engine judges
// sockets that take nothing. Three kinds of answers are judged:
//
//	an answer whose own window is closed:     the bytes sent of it
//	answers that wait for the connection's    the bytes sent of all answers: others may be first by priority
//	window:
//	answers that are not made yet, since the  like the answers before them. Where the windows of those are closed:
//	client leaves others unsent:              the bytes that the client lets out of all answers, in full or beyond
//	                                          the initial windows of streams; otherwise each would begin to wait
//	                                          when those before it are cut
//
// judge looks at all streams.
func (s *session) judge() {
	now := s.d.Now()
	passed := min(now-s.judged, 2*s.h.tick) // a socket that took nothing meanwhile is no fault of the windows
	s.judged = now
	var cut, late, waiting, delayed []*stream
	blocked := false
	for st := range s.h2.Streams {
		own, _ := st.Owner.(*stream)
		if own == nil || st.Closed() {
			continue
		}
		switch s.judgeStream(own, now, passed) {
		case slowBody:
			late = append(late, own)
		case slowTaker:
			cut = append(cut, own)
			blocked = true
		case shut:
			blocked = true
			if own.delayed && own.taking.waited > 1 { // it was delayed at the last check, too
				delayed = append(delayed, own)
			}
		case waits:
			waiting = append(waiting, own)
		case unmade:
			own.delayed = true
			delayed = append(delayed, own)
		}
	}
	settings := &s.h.server.Settings
	if s.taking.judge(settings, len(waiting) > 0, s.h2.Shut(), s.sent, passed) {
		cut = append(append(cut, waiting...), delayed...)
		s.taking, delayed = taking{}, nil
	}
	if s.opening.judge(settings, len(delayed) > 0, blocked, s.opened, passed) { // until none is left
		cut = append(cut, delayed...)
	}
	for _, own := range late {
		s.endGathering(own, refuse)
		what := settings.SlowBody()
		s.h.server.NoteSlow(admission.SlowBody, s.c.RemoteAddr(), what)
		s.refuse(own, &own.req, s.h.server.Pipeline.Problem(http.StatusRequestTimeout, what, nil), exchange.FromProtocol)
	}
	for _, own := range cut {
		s.h.server.NoteSlowReader(s.c.RemoteAddr())
		s.mu.Lock()
		own.slow = true
		s.mu.Unlock()
		s.cut(own)
	}
}

// A verdict is the result of a check of one stream's client.
type verdict uint8

const (
	fine      verdict = iota
	slowBody          // the client sends too little of the body
	slowTaker         // the client lets out too little of the answer
	shut              // the answer's window is closed
	waits             // the answer waits for the connection's window, or its turn
	unmade            // the answer is not made yet, since others wait
)

// A pace is how fast the client of a stream sends and takes. The loop's.
type pace struct {
	came     int64 // bytes of the body since the last check
	bodyPace exchange.BodyPace
	sent     int64 // bytes of the answer's body
	free     int64 // the number of these that its initial window allows
	taking   taking
	delayed  bool // it has waited for its client, or for room
}

// A taking measures the time in which output waits for a client.
type taking struct {
	waited int64 // ns of the present period, plus one; 0 before it has begun
	marked int64 // bytes sent before the period
}

// judge receives the state during the time that has passed: whether output waited for the client, and whether a window kept it
// from being sent (shut). It reports whether less than MinWriteRate was sent in a full period. If nothing waited at the check
// before, the start of the wait is unknown, so the time that has passed does not count.
func (t *taking) judge(settings *exchange.Settings, waits, shut bool, sent, passed int64) bool {
	switch {
	case !waits:
		*t = taking{}
		return false
	case !shut:
		return false
	case t.waited == 0:
		t.waited, t.marked = 1, sent
		return false
	}
	if t.waited += passed; t.waited <= int64(settings.WriteTimeout) {
		return false
	}
	if float64(sent-t.marked) < max(float64(settings.MinWriteRate)*settings.WriteTimeout.Seconds(), 1) {
		return true
	}
	t.waited, t.marked = 1, sent
	return false
}

// judgeStream judges one stream's client over the time that has passed.
func (s *session) judgeStream(own *stream, now, passed int64) verdict {
	settings := &s.h.server.Settings
	if own.intake == gathering {
		came := own.came
		own.came = 0
		if own.bodyPace.TooSlow(settings, time.Duration(passed), came) {
			return slowBody
		}
		return fine
	}
	s.mu.Lock()
	b := &own.in
	if own.intake == streamed && !b.ended && own.cut == nil && !(own.kind == tunnel && own.answer.started()) { // a stream that is cut may not have noticed yet
		if b.waits {
			b.waited += now - b.since
			b.since = now
		}
		waited := min(b.waited, passed)
		b.waited = 0
		if own.reading.IsZero() && waited > 0 && own.bodyPace.TooSlow(settings, time.Duration(waited), own.came) {
			own.cut = s.h.server.CutBody(s.c.RemoteAddr())
			own.moved.Broadcast()
		}
		own.came = 0
	}
	left, postponed := len(own.rest) > 0 || own.unsent() > 0, own.action == postponed
	s.mu.Unlock()
	switch closed := s.h2.Window(own.st) == 0; {
	case postponed:
		return unmade
	case own.taking.judge(settings, left, closed, own.sent, passed):
		return slowTaker
	case left && closed:
		return shut
	case left:
		return waits
	}
	return fine
}

// recordArrival records the arrival time of an incomplete frame or field block.
func (s *session) recordArrival(consumed, left int) {
	now := s.d.Now()
	switch {
	case left == 0:
		s.partial = 0
	case consumed > 0 || s.partial == 0:
		s.partial = now
	}
	s.chargeTables(consumed)
	if !s.h2.InBlock() {
		s.block = 0
	} else if s.block == 0 {
		s.block = now
	}
}

// half returns the arrival time of an incomplete frame or field block, 0 for none.
func (s *session) half() int64 {
	if s.block != 0 && (s.partial == 0 || s.block < s.partial) {
		return s.block
	}
	return s.partial
}

// expire does the work whose time has arrived.
func (s *session) expire() {
	if s.abuser != nil {
		s.closeAbuser()
		return
	}
	s.collect()
	s.judge()
	now := s.d.Now()
	settings := &s.h.server.Settings
	switch half := s.half(); {
	case half != 0 && (now-half >= int64(settings.HeadTimeout) || s.d.Evicting() && now-half >= restAfter):
		s.h.server.NoteSlow(admission.SlowHead, s.c.RemoteAddr(), settings.SlowHead())
		s.h2.GoAway(true)
		s.goodbye = ended
		s.c.CloseLingering()
	case s.h2.Len() == 0 && half == 0 && (now-s.since >= int64(settings.IdleTimeout) || s.d.Evicting() && now-s.since >= restAfter) && s.goodbye != ended:
		if s.goodbye != final {
			s.h2.GoAway(true)
		}
		s.goodbye = ended
		s.c.CloseLingering()
	}
	if s.h2.Len() == 0 && !s.rested {
		s.rested = true
		s.h2.Rest()
	}
	s.h2.PartLate()
	if s.bodies > 0 {
		s.beginBodies()
	}
	s.pump()
	s.goOn()
}

// restAfter is the idle time, in ns, after which a connection frees memory.
const restAfter = int64(time.Second)

// schedule sets the deadline of the next work that does not depend on input.
func (s *session) schedule(d *engine.Driver) {
	now := d.Now()
	at := int64(1<<63 - 1)
	settings := &s.h.server.Settings
	if s.h2.Len() > 0 {
		at = s.judged + s.h.tick
	} else {
		at = s.since + int64(settings.IdleTimeout)
		if !s.rested {
			at = min(at, s.since+restAfter)
		}
	}
	if s.bodies > 0 {
		at = min(at, now+gatherTime)
	}
	if half := s.half(); half != 0 {
		at = min(at, half+int64(settings.HeadTimeout))
	}
	for _, by := range [...]int64{s.h2.PartBy(), s.goOnAt()} {
		if by != 0 {
			at = min(at, by)
		}
	}
	if s.goodbye == said || s.goodbye == staying && s.goodbyeAt != 0 {
		at = min(at, s.goodbyeAt)
	}
	s.c.SetDeadline(time.Duration(max(at-now, 1)))
}
