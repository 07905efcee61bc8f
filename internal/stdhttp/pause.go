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

// acceptPause is how long a listener that found no free descriptor waits before it tries again, and how often a
// pause that lasts is told of.
const acceptPause = time.Second

// errMaxConnections is why accepting pauses at Config.MaxConnections.
var errMaxConnections = errors.New("as many connections are open as may be")

// pauses are the times during which nothing is accepted, of all listeners together.
type pauses struct {
	count atomic.Uint64

	mu    sync.Mutex
	now   int       // listeners that pause
	since time.Time // when the first of them began
}

// begin counts a listener that accepts nothing from now on.
func (p *pauses) begin() {
	p.count.Add(1)
	p.resume(time.Now())
}

// resume takes back the end of a pause that began at since.
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

// lasting returns for how long one has lasted, 0 if there is none.
func (p *pauses) lasting() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == 0 {
		return 0
	}
	return max(time.Since(p.since), 1)
}

// awaitSlot waits until there may be one more connection. It is false if the listener is closed before.
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
		case <-s.freed: // with descriptors there is no other way to know
		case <-retry.C:
		}
		s.pauses.end() // once there are descriptors, Accept waits for clients
		if closed {
			return nil, net.ErrClosed
		}
		if c, err = l.lastListener.Accept(); !scarce(err) {
			return c, err
		}
		s.pauses.resume(since)
	}
}

// scarce reports whether there were no descriptors for a connection that has come.
func scarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// notePaused says, also while that lasts, that nothing is accepted.
func (s *Service) notePaused(why error) {
	if n, due := s.Shed.Note(admission.AcceptPaused); due {
		s.Log.Warn("accepting pauses", "err", why, "open", s.open.Load(), "count", n)
	}
}

const (
	// One in idleShare of the idle connections ends at a time, and at least leastIdle, to make room for others.
	idleShare, leastIdle = 16, 16
	// spareIdle is how long a connection must have been silent for that: it may be in use.
	spareIdle = time.Second
)

// dropIdle ends idle connections of HTTP/1.1, those that have been silent for longest.
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
