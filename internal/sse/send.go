package sse

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// keptEvent is the maximum size of the buffer that an open stream keeps between events, in bytes.
const keptEvent = 4 << 10

// A Writer receives the bytes of events.
type Writer interface {
	io.Writer
	Flush() error
}

// A Sender sends the events of one stream. It is safe for concurrent use.
type Sender struct {
	To   Writer
	Lost func() // called after an event could not be sent

	mu       sync.Mutex
	buf      []byte
	interval time.Duration // interval of heartbeats
	timer    *time.Timer   // timer of the next heartbeat; nil before the first heartbeat is scheduled
	sent     time.Time     // time of the last write
	retry    time.Duration // latest Event.Retry, or 0
	over     bool
}

var errOver = errors.New("the event stream has ended")

// Send sends an event. It returns an error if ID or Type contains a line break, or if the Writer fails.
func (s *Sender) Send(ev *Event) error {
	if strings.ContainsAny(ev.ID, "\r\n\x00") {
		return fmt.Errorf("event ID %q: it must not contain a line break or NUL", ev.ID)
	}
	if strings.ContainsAny(ev.Type, "\r\n") {
		return fmt.Errorf("event type %q: it must not contain a line break", ev.Type)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev.Retry > 0 {
		s.retry = ev.Retry
	}
	s.buf = ev.Append(s.buf[:0])
	return s.write()
}

// SendRetry tells the client to reconnect after a random delay, see AppendRetry. The window is the latest Event.Retry, or 5 s.
func (s *Sender) SendRetry() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = AppendRetry(s.buf[:0], cmp.Or(s.retry, 5*time.Second))
	return s.write()
}

// AppendRetry appends a random delay after which the client should reconnect, so that the clients of a server that drains do not
// reconnect at the same time. The delay is between a tenth of window and that time plus window.
func AppendRetry(b []byte, window time.Duration) []byte {
	most := max(window.Milliseconds(), 1)
	return append(strconv.AppendInt(append(b, "retry: "...), most/10+rand.Int64N(most), 10), "\n\n"...)
}

// Comment sends lines of text that clients ignore.
func (s *Sender) Comment(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(AppendLines(s.buf[:0], ":", text), '\n')
	return s.write()
}

// Heartbeat sets the time without events after which an empty comment is sent. 0 turns heartbeats off.
func (s *Sender) Heartbeat(every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interval = every
	switch {
	case s.over:
	case s.timer == nil && every > 0:
		s.timer = time.AfterFunc(every, s.beat)
	case every > 0:
		s.timer.Reset(every)
	case s.timer != nil:
		s.timer.Stop()
	}
}

// beat sends a heartbeat. The timer calls it, so that no goroutine has to wait.
func (s *Sender) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.interval <= 0 {
		return
	}
	wait := s.interval - time.Since(s.sent)
	if wait <= 0 {
		s.buf = append(s.buf[:0], ":\n\n"...)
		if s.write() != nil {
			return
		}
		wait = s.interval
	}
	s.timer.Reset(wait)
}

// write writes buf. The caller must hold mu.
func (s *Sender) write() error {
	if s.over {
		return errOver
	}
	_, err := s.To.Write(s.buf)
	if err == nil {
		err = s.To.Flush()
	}
	if err != nil {
		s.Lost()
	}
	if cap(s.buf) > keptEvent {
		s.buf = nil
	}
	s.sent = time.Now()
	return err
}

// While calls f. No event is written during the call.
func (s *Sender) While(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Close ends the stream. Later calls of other methods send nothing.
func (s *Sender) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
