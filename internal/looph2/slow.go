//go:build linux

package looph2

import (
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The loop judges slow clients, every Handler.tick: clients whose bodies arrive below Config.MinBodyRate over BodyTimeout,
// counting the time in which the server waits for them, and clients that grant less than MinWriteRate over WriteTimeout. Data
// that the socket does not accept is judged by the engine. Three cases are judged:
//
//	a response whose window is closed     bytes sent of it
//	responses that wait for the           bytes sent of all: others are sent first, by priority
//	connection's window
//	responses that are not made yet,      the same as those before them. If their windows are closed: bytes granted of all,
//	since the client does not read        completely or beyond the initial windows; otherwise each would begin to wait when
//	others                                those before it are cut off
//
// judge looks at all streams.
func (s *session) judge() {
	now := s.d.Now()
	passed := min(now-s.judged, 2*s.h.tick) // a full socket is not the fault of the windows
	s.judged = now
	var cut, late, waiting, delayed []*stream
	blocked := false
	for st := range s.h2.Streams {
		own, _ := st.Owner.(*stream)
		if own == nil || own.dropped {
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
			if own.delayed && own.taking.waited > 1 { // it was delayed at the last judgement, too
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
		own.gathering = false
		s.bodies--
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

// A verdict is the judgement of one stream's client.
type verdict uint8

const (
	fine      verdict = iota
	slowBody          // the body arrived too slowly
	slowTaker         // the response was granted too slowly
	shut              // the response's window is closed
	waits             // the response waits for the connection's window, or its turn
	unmade            // the response is not made yet, since others wait
)

// A taking measures the time in which data waits for a client.
type taking struct {
	waited int64 // ns of the current period, plus one; 0 before it has begun
	marked int64 // bytes sent before
}

// judge records, for the passed time, whether data waited for the client and whether it could not be sent (shut). It reports
// whether less than MinWriteRate was sent in a complete period. If no data waited before, the start of the wait is unknown, and
// the passed time does not count.
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

// judgeStream judges one stream's client for the passed time.
func (s *session) judgeStream(own *stream, now, passed int64) verdict {
	settings := &s.h.server.Settings
	if own.gathering {
		came := own.came
		own.came = 0
		if own.pace.TooSlow(settings, time.Duration(passed), came) {
			return slowBody
		}
		return fine
	}
	s.mu.Lock()
	b := &own.in
	if own.streamed && !b.ended && own.cut == nil && !(own.tunnel && own.started) { // the action of a cut stream may not have noticed yet
		if b.waits {
			b.waited += now - b.since
			b.since = now
		}
		waited := min(b.waited, passed)
		b.waited = 0
		if own.reading.zero() && waited > 0 && own.pace.TooSlow(settings, time.Duration(waited), own.came) {
			own.cut = s.h.server.CutBody(s.c.RemoteAddr())
			own.moved.Broadcast()
		}
		own.came = 0
	}
	left, awaits := len(own.rest) > 0 || own.unsent() > 0, own.awaits
	s.mu.Unlock()
	switch closed := s.h2.Window(own.st) == 0; {
	case own.putOff || awaits:
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

// note records since when input is incomplete.
func (s *session) note(consumed, left int) {
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

// half returns the time since which input is incomplete, 0 for none.
func (s *session) half() int64 {
	if s.block != 0 && (s.partial == 0 || s.block < s.partial) {
		return s.block
	}
	return s.partial
}

// expire does scheduled work.
func (s *session) expire() {
	if s.calm != nil {
		s.endCalm()
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

// restAfter is the idle time of a connection, in ns, after which it frees memory.
const restAfter = int64(time.Second)

// schedule sets the timer for the next work without input.
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
