package sse

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// keptEvent is the largest event buffer, in bytes, that an open stream keeps.
const keptEvent = 4 << 10

// A Writer is what events are sent through.
type Writer interface {
	io.Writer
	Flush() error
}

// A Sender sends the events of one stream. Its methods may be called by any goroutine.
type Sender struct {
	To   Writer
	Lost func() // called when something could not be sent

	mu       sync.Mutex
	buf      []byte
	interval time.Duration // between signs of life
	timer    *time.Timer   // when the next may be due; nil before the first
	sent     time.Time     // when something was last sent
	over     bool
}

var errOver = errors.New("the event stream has ended")

// Send sends one event. It fails for an ID or a Type that holds a line break, and when Writer does.
func (s *Sender) Send(ev *Event) error {
	if strings.ContainsAny(ev.ID, "\r\n\x00") {
		return fmt.Errorf("event ID %q: it may hold no line break and no NUL", ev.ID)
	}
	if strings.ContainsAny(ev.Type, "\r\n") {
		return fmt.Errorf("event type %q: it may hold no line break", ev.Type)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = ev.Append(s.buf[:0])
	return s.write()
}

// Comment sends lines that clients ignore.
func (s *Sender) Comment(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(AppendLines(s.buf[:0], ":", text), '\n')
	return s.write()
}

// Heartbeat sets how long the stream may be silent before an empty comment is sent; 0 is for ever.
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

// beat is called when a sign of life may be due. No goroutine waits for that.
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

// write sends what is in buf. mu is held.
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

// While calls f while nothing is sent.
func (s *Sender) While(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Close ends the stream for whoever still has s: nothing is sent any more.
func (s *Sender) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
