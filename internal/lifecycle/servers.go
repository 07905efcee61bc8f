package lifecycle

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Server serves one listener.
type Server interface {
	// Serve serves connections until Shutdown, then it returns nil, or until the listener fails. It closes the
	// listener.
	Serve(ln net.Listener) error
	// StopAccepting accepts the connections in the backlog and closes the listener. It returns early when ctx ends.
	StopAccepting(ctx context.Context)
	// Shutdown, after StopAccepting, closes idle connections and waits for running requests until ctx ends. Then it
	// closes the remaining connections and returns ctx's error.
	Shutdown(ctx context.Context) error
}

// Servers are the servers of one app, including its inner addresses. The zero value has none. The methods are safe for
// concurrent use.
type Servers struct {
	Workers              // run from the first Add to Shutdown
	unready  atomic.Bool // health checks fail
	draining atomic.Bool // answers close their connections

	mu      sync.Mutex
	running []Server
	opening sync.WaitGroup // calls of Add; none begins after stopped is set
	stopped bool
	until   time.Time     // deadline of the drain, zero for none
	signal  chan struct{} // closed with draining; made on demand
	drained chan struct{} // closed when Shutdown has ended
}

// Unready makes Ready report false from now on.
func (s *Servers) Unready() { s.unready.Store(true) }

// Ready reports whether the app accepts more requests.
func (s *Servers) Ready() bool { return !s.unready.Load() }

// IsDraining reports whether Shutdown has stopped accepting, so that every answer closes its connection.
func (s *Servers) IsDraining() bool { return s.draining.Load() }

// Restarting reports whether the app drains because a new process has taken over, or because a listener has failed, so that a new
// process is expected.
func (s *Servers) Restarting() bool { return s.draining.Load() && s.Ready() }

// Draining returns a channel that is closed when IsDraining becomes true.
func (s *Servers) Draining() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signal == nil {
		s.signal = make(chan struct{})
		if s.draining.Load() {
			close(s.signal)
		}
	}
	return s.signal
}

// Spread returns the time over which the ends of n streams should be spread in a drain, so that not all clients reconnect at
// once: a millisecond for each stream, and at most half of the remaining time. Without a deadline it is 0.
func (s *Servers) Spread(n int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until.IsZero() {
		return 0
	}
	return max(min(time.Until(s.until)/2, time.Duration(n)*time.Millisecond), 0)
}

// ErrStopped is the error of Add after Shutdown.
var ErrStopped = errors.New("the app was shut down")

// Add makes a server by open, unless Shutdown was called, and registers it for Shutdown. Shutdown waits for open. The
// channel drained is closed when Shutdown has ended.
func (s *Servers) Add(open func() (Server, error)) (drained <-chan struct{}, err error) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil, ErrStopped
	}
	s.opening.Add(1)
	s.mu.Unlock()
	defer s.opening.Done()
	srv, err := open()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	s.running = append(s.running, srv)
	s.start()
	return s.drained, nil
}

// Serving reports whether a call of Add has succeeded.
func (s *Servers) Serving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) > 0
}

// Shutdown ends all servers and workers, in the order of the package comment. It waits for them at most until ctx is done, and
// calls last afterwards. After the begin of Shutdown, Add returns ErrStopped.
func (s *Servers) Shutdown(ctx context.Context, last func()) error {
	s.mu.Lock()
	first := !s.stopped
	s.stopped = true
	s.mu.Unlock()
	s.opening.Wait()
	running := s.running // constant from here on
	errs := make([]error, len(running)+1)
	var wg sync.WaitGroup
	for _, srv := range running {
		wg.Go(func() { srv.StopAccepting(ctx) })
	}
	wg.Wait()
	s.beginDrain(ctx)
	wg.Go(func() { errs[len(running)] = s.stop(ctx) })
	for i, srv := range running {
		wg.Go(func() { errs[i] = srv.Shutdown(ctx) })
	}
	wg.Wait()
	last()
	if first && len(running) > 0 {
		close(s.drained)
	}
	return errors.Join(errs...)
}

// beginDrain begins the drain: from now on every answer closes its connection. It closes the channel of Draining.
func (s *Servers) beginDrain(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until, _ = ctx.Deadline()
	if s.draining.Swap(true) {
		return
	}
	if s.signal != nil {
		close(s.signal)
	}
}
