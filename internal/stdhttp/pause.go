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

// acceptPause is the time after which a listener that had no free descriptors tries again. It is also the interval of log lines
// during a long pause.
const acceptPause = time.Second

// errMaxConnections is the reason for a pause because of Config.Limits.MaxConnections.
var errMaxConnections = errors.New("the maximum number of connections is open")

// pauses records the times in which listeners did not accept connections.
type pauses struct {
	count atomic.Uint64

	mu    sync.Mutex
	now   int       // number of listeners that pause at present
	since time.Time // start of the current pause that began first
}

// begin records that a listener stops accepting.
func (p *pauses) begin() {
	p.count.Add(1)
	p.resume(time.Now())
}

// resume continues a pause that began at since, after end was called for it.
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

// awaitSlot waits until the limit permits one more connection. It returns false if the listener is closed before.
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
			s.makeRoom()
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

// acceptOne accepts a connection. If no descriptors are free, it waits.
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
		s.makeRoom()
		closed := false
		select {
		case <-l.closed:
			closed = true
		case <-s.freed: // descriptors of other files may become free without a signal
		case <-retry.C:
		}
		s.pauses.end() // Accept now waits for clients, not for descriptors
		if closed {
			return nil, net.ErrClosed
		}
		if c, err = l.lastListener.Accept(); !scarce(err) {
			return c, err
		}
		s.pauses.resume(since)
	}
}

// scarce reports whether accepting a connection failed because no descriptors are free.
func scarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// notePaused logs that no connections are accepted. It repeats this during a long pause.
func (s *Service) notePaused(why error) {
	if n, due := s.Shed.Note(admission.AcceptPaused); due {
		s.Log.Warn("accepting pauses", "err", why, "open", s.open.Load(), "count", n)
	}
}

const (
	// To make room for new connections, one in idleShare of the idle connections is closed at a time, and at least minIdle
	// connections.
	idleShare, minIdle = 16, 16
	// Only connections that were idle for at least spareIdle are closed, because others may be in use.
	spareIdle = time.Second
)

// A silentConn is a connection and the time since its last input.
type silentConn struct {
	*timedConn
	silent time.Duration
}

// silentConns returns the connections that have the given state and have been silent for at least spareIdle. The connection that
// has been silent for longest comes first.
func (s *Service) silentConns(state uint32) (all []silentConn) {
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	for _, srv := range servers {
		srv.open.mu.Lock()
		for c := range srv.open.all {
			if c.idle.Load() != state {
				continue
			}
			if silent := silentFor(c.Conn); silent >= spareIdle {
				all = append(all, silentConn{c, silent})
			}
		}
		srv.open.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b silentConn) int { return cmp.Compare(b.silent, a.silent) })
	return all
}

// makeRoom ends some of the HTTP/1.1 connections that have been idle for longest. If no connection is idle, it ends connections
// whose client has stopped sending within a request head or a TLS handshake, of the address that has most of these connections.
func (s *Service) makeRoom() {
	idle := s.silentConns(waiting)
	for _, c := range few(idle) {
		if n, due := s.Shed.Note(admission.IdleDropped); due {
			s.Log.Warn("no room for more connections: idle ones are closed, the oldest first", "idle", len(idle), "count", n)
		}
		c.end(waiting)
	}
	if len(idle) > 0 {
		return
	}
	incomplete := s.silentConns(begun)
	for _, c := range few(s.ofLargestAddress(incomplete)) {
		if n, due := s.Shed.Note(admission.SlowHead); due {
			s.Log.Warn("no room for more connections: those with an incomplete request are closed, of the address with most of them first",
				"incomplete", len(incomplete), "count", n)
		}
		c.end(begun)
	}
}

// few returns the connections that are ended together, which are the first ones in all.
func few(all []silentConn) []silentConn {
	return all[:min(len(all), max(len(all)/idleShare, minIdle))]
}

// ofLargestAddress returns the connections of the address that has most of them. A trusted proxy represents many clients, so
// each of its connections counts as an address.
func (s *Service) ofLargestAddress(all []silentConn) (own []silentConn) {
	byAddress := map[admission.AddressKey][]silentConn{}
	for i, c := range all {
		same := all[i : i+1 : i+1]
		if ip := addrPortOf(c).Addr(); ip.IsValid() && !s.TrustedProxies().Trusts(ip) {
			key := admission.AddressKeyOf(ip)
			same = append(byAddress[key], c)
			byAddress[key] = same
		}
		if len(same) > len(own) {
			own = same
		}
	}
	return own
}
