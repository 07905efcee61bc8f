package stdhttp

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// acceptPause is how long a listener without free descriptors waits before the next try, and the interval of log lines
// during a long pause.
const acceptPause = time.Second

// errMaxConnections is the reason of a pause at Config.Limits.MaxConnections.
var errMaxConnections = errors.New("as many connections are open as may be")

// pauses are the times without accepts, over all listeners.
type pauses struct {
	count atomic.Uint64

	mu    sync.Mutex
	now   int       // number of listeners that pause
	since time.Time // start of the first current pause
}

// begin counts a listener that stops accepting.
func (p *pauses) begin() {
	p.count.Add(1)
	p.resume(time.Now())
}

// resume reverts the end of a pause that began at since.
func (p *pauses) resume(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now++; p.now == 1 || since.Before(p.since) {
		p.since = since
	}
}

func (p *pauses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
}

// lasting returns the duration of the current pause, or 0.
func (p *pauses) lasting() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == 0 {
		return 0
	}
	return max(time.Since(p.since), 1)
}

// awaitSlot waits until one more connection is allowed. It returns false if the listener closes before.
func (l *listener) awaitSlot() bool {
	s := l.service
	if s.slots == nil {
		return true
	}
	select {
	case s.slots <- struct{}{}:
		return true
	default:
	}
	s.pauses.begin()
	defer s.pauses.end()
	for retry := time.NewTicker(acceptPause); ; {
		s.notePaused(errMaxConnections)
		if hasBacklog(l.Listener) {
			s.dropIdle()
		}
		select {
		case s.slots <- struct{}{}:
			retry.Stop()
			return true
		case <-l.closed:
			retry.Stop()
			return false
		case <-retry.C:
		}
	}
}

// acceptOne accepts a connection, also after a time without free descriptors.
func (l *listener) acceptOne() (net.Conn, error) {
	c, err := l.lastListener.Accept()
	if !scarce(err) {
		return c, err
	}
	s, since := l.service, time.Now()
	retry := time.NewTicker(acceptPause)
	defer retry.Stop()
	s.pauses.begin()
	for {
		s.notePaused(err)
		s.dropIdle()
		closed := false
		select {
		case <-l.closed:
			closed = true
		case <-s.freed: // descriptors become free without a signal
		case <-retry.C:
		}
		s.pauses.end() // with free descriptors, Accept waits for clients
		if closed {
			return nil, net.ErrClosed
		}
		if c, err = l.lastListener.Accept(); !scarce(err) {
			return c, err
		}
		s.pauses.resume(since)
	}
}

// scarce reports whether a connection could not be accepted because there are no free descriptors.
func scarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// notePaused logs that no connections are accepted, and repeats it during a long pause.
func (s *Service) notePaused(why error) {
	if n, due := s.Shed.Note(admission.AcceptPaused); due {
		s.Log.Warn("accepting pauses", "err", why, "open", s.open.Load(), "count", n)
	}
}

const (
	// One in idleShare of the idle connections, and at least leastIdle, is closed at a time to make room for new ones.
	idleShare, leastIdle = 16, 16
	// spareIdle is the minimum idle time of a closed connection, since a connection may be in use.
	spareIdle = time.Second
)

// dropIdle closes the HTTP/1.1 connections that have been idle for longest.
func (s *Service) dropIdle() {
	type idle struct {
		c      *timedConn
		silent time.Duration
	}
	var all []idle
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	for _, srv := range servers {
		srv.open.mu.Lock()
		for c := range srv.open.all {
			if c.idle.Load() != waiting {
				continue
			}
			if silent := silentFor(c.Conn); silent >= spareIdle {
				all = append(all, idle{c, silent})
			}
		}
		srv.open.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b idle) int { return cmp.Compare(b.silent, a.silent) })
	for _, i := range all[:min(len(all), max(len(all)/idleShare, leastIdle))] {
		if n, due := s.Shed.Note(admission.IdleDropped); due {
			s.Log.Warn("no room for more connections: idle ones are closed, the oldest first", "idle", len(all), "count", n)
		}
		i.c.end()
	}
}
