//go:build linux

package engine

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/overload"
)

// An Engine serves connections with event loops.
type Engine struct {
	cfg     Config
	handler Handler
	start   time.Time
	skew    atomic.Int64 // ns added to the clock by tests

	loops      []*loop
	running    atomic.Int32 // loops that have not ended
	monitor    monitor
	workers    workers
	handshakes handshakes
	buffers    bufferPool
	shared     sharedBodies // also counts connections with pending output
	drivers    driverPool

	graceTicks uint32 // Config.WriteGrace in ticks
	graceBytes int64  // bytes that a peer must receive in graceTicks

	listenMu  sync.Mutex
	listeners map[*listener]net.Listener // listeners in use; none after closeListeners
	deaf      bool                       // closeListeners has been called; under listenMu

	draining atomic.Bool  // Shutdown or Close has begun
	forced   atomic.Bool  // connections that are not idle are closed too
	spread   atomic.Int64 // see Driver.Spread
	// lastRequestsLimit is the upper bound of lastRequests and firstRequest during this shutdown, in ns; 0 means none.
	lastRequestsLimit atomic.Int64
	stopping          chan struct{} // closed by closeListeners
	done              chan struct{} // closed when all loops have ended

	secured      atomic.Int64 // open connections with TLS whose handshake is complete
	idlePosted   atomic.Bool  // msgDropIdle was posted and not yet handled
	conns        atomic.Int64 // open connections, and one for each loop that is about to accept
	away         atomic.Int64 // connections owned by a detached driver or a worker
	accepts      atomic.Uint64
	acceptPauses atomic.Uint64
	takeovers    atomic.Uint64
	pausedLoops  atomic.Int32
	pausedSince  atomic.Int64
	warnedAt     atomic.Int64    // time of the last warning of overload
	failures     admission.Lines // limits log lines about failed system calls of a connection
}

// New starts an engine's loops. They use no processor time while they have no work.
func New(cfg Config, h Handler) (*Engine, error) {
	e := &Engine{
		cfg:      cfg.withDefaults(),
		handler:  h,
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
	if e.start = cfg.Start; e.start.IsZero() {
		e.start = time.Now()
	}
	if err := e.monitor.init(); err != nil {
		return nil, err
	}
	e.workers.e = e
	e.workers.line.control = overload.NewQueue(e.cfg.QueueTarget)
	if e.cfg.AdaptiveWorkers {
		e.workers.adaptive = overload.NewConcurrency(minWorkers, e.cfg.MaxWorkers)
	}
	e.handshakes.init(e)
	e.buffers.init(e.cfg.Budget, e.cfg.ReadBuffer)
	e.initDrivers()
	if e.cfg.Budget.Now == nil {
		e.cfg.Budget.Now = e.now
	}
	e.graceTicks = uint32(e.cfg.WriteGrace>>tickShift) + 1
	e.graceBytes = int64(float64(e.cfg.MinWriteRate) * e.cfg.WriteGrace.Seconds())
	for range e.cfg.Loops {
		l, err := newLoop(e)
		if err != nil {
			err = errors.Join(err, e.monitor.timer.Close())
			for _, l := range e.loops {
				err = errors.Join(err, l.file.Close())
				closeFD(l.waker)
			}
			return nil, err
		}
		l.number = len(e.loops)
		e.loops = append(e.loops, l)
	}
	e.running.Store(int32(len(e.loops)))
	for _, l := range e.loops {
		d := e.newDriver(l, 0)
		go func() {
			deepen(0)
			d.run()
		}()
	}
	go e.watch()
	return e, nil
}

// deepen grows the stack of the goroutine to the size that a turn of a loop needs, while the stack is almost empty. If the stack
// grew during the first request, the runtime would copy and adjust more frames, and load stack maps that are not needed
// otherwise.
//
//go:noinline
func deepen(i int) byte {
	var room [4 << 10]byte
	return room[i]
}

// minWorkers is the minimum number of busy workers with Config.AdaptiveWorkers.
const minWorkers = 4

// now returns the engine's clock: monotonic ns since Config.Start.
func (e *Engine) now() int64 { return int64(time.Since(e.start)) + e.skew.Load() }

// deadlineAt returns the time at which the engine's clock will show ns.
func (e *Engine) deadlineAt(ns int64) time.Time {
	return e.start.Add(time.Duration(ns - e.skew.Load()))
}

// Serve accepts connections from ln, a TCP or unix listener, until Shutdown or Close, and then closes it. It may be called for
// several listeners. It returns net.ErrClosed after Shutdown or Close. If other code closes ln, it returns an error that wraps
// net.ErrClosed, and continues to serve the connections accepted from ln.
func (e *Engine) Serve(ln net.Listener) error { return e.ServeTLS(ln, nil) }

// ServeTLS is Serve for connections with TLS, unless conf is nil.
func (e *Engine) ServeTLS(ln net.Listener, conf *TLS) error {
	if err := Prepare(ln, e.cfg.KeepAlive); err != nil {
		return err
	}
	return e.ServePrepared(ln, conf)
}

// ServePrepared is ServeTLS for a listener on which Prepare was called.
func (e *Engine) ServePrepared(ln net.Listener, conf *TLS) error {
	l, err := newListener(ln)
	if err != nil {
		return err
	}
	if conf != nil {
		own := *conf
		own.Config = withAppCalls(conf.Config, conf.Prompt)
		conf = &own
	}
	l.tls = conf
	if !e.enlist(l, ln) {
		closeFD(l.fd)
		_ = ln.Close() // perhaps closed already in another way
		return net.ErrClosed
	}
	l.loops.Store(int32(len(e.loops)))
	for _, loop := range e.loops {
		if !loop.post(message{kind: msgListen, listener: l}) && l.loops.Add(-1) == 0 {
			closeFD(l.fd) // all loops have ended before they could accept from l
		}
	}
	look := time.NewTicker(closedLook)
	defer look.Stop()
	for {
		select {
		case <-e.stopping:
			return net.ErrClosed
		case <-look.C:
			if isClosed(ln) && e.delist(l) {
				e.broadcast(message{kind: msgUnlisten, listener: l})
				return &net.OpError{Op: "accept", Net: ln.Addr().Network(), Addr: ln.Addr(), Err: net.ErrClosed}
			}
		}
	}
}

// closedLook is the interval at which Serve checks whether other code has closed its listener. The loops, which have duplicates
// of the descriptor, cannot see that, and no call reports it.
const closedLook = 200 * time.Millisecond

// isClosed reports whether other code has closed ln, which was given to Prepare.
func isClosed(ln net.Listener) bool {
	raw, err := ln.(syscall.Conn).SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}

// delist undoes enlist. It returns false if closeListeners has already closed the listener of l.
func (e *Engine) delist(l *listener) bool {
	e.listenMu.Lock()
	defer e.listenMu.Unlock()
	delete(e.listeners, l)
	return !e.deaf
}

// enlist registers ln to be closed by closeListeners. It returns false if closeListeners has already been called.
func (e *Engine) enlist(l *listener, ln net.Listener) bool {
	e.listenMu.Lock()
	defer e.listenMu.Unlock()
	if e.deaf {
		return false
	}
	if e.listeners == nil {
		e.listeners = make(map[*listener]net.Listener)
	}
	e.listeners[l] = ln
	return true
}

// closeListeners closes the listeners given to Serve. The loops have duplicates of the descriptors: the last loop empties the
// backlog before the socket is closed.
func (e *Engine) closeListeners() {
	e.listenMu.Lock()
	defer e.listenMu.Unlock()
	if e.deaf {
		return
	}
	e.deaf = true
	for _, ln := range e.listeners {
		_ = ln.Close() // perhaps closed already in another way
	}
	e.listeners = nil
	close(e.stopping)
}

// StopAccepting closes all listeners once the connections in their backlogs have been accepted. These and all other connections
// are served as before.
func (e *Engine) StopAccepting() {
	e.closeListeners()
	e.postToAll(msgStopAccepting).Wait()
}

// lastRequests is how long an idle connection may still send one last request during a shutdown. It also applies to a connection
// that becomes idle later and whose answers did not announce the close. If such connections were closed at once, requests in
// transit would be lost.
const lastRequests = 250 * time.Millisecond

// firstRequest is the same time for a connection that has not had a request: clients do not repeat the first request of a
// connection. It is longer because a lost packet is sent again after a second (RFC 6298, section 2.1).
const firstRequest = 2 * time.Second

// spreadPerConn is the time, in ns for each open connection, over which the ends of switched connections are spread during a
// shutdown, so that at most about 1,000 clients a second reconnect to other servers. The total is at most half of the time of the
// shutdown.
const spreadPerConn = int64(time.Millisecond)

// Shutdown stops accepting and closes idle connections, after a moment for their last requests that is at most half of the time
// until the deadline of ctx. It waits for the other connections to finish. If ctx is done first, Shutdown closes them as Close
// does and returns the error of ctx.
func (e *Engine) Shutdown(ctx context.Context) error {
	if until, ok := ctx.Deadline(); ok {
		e.lastRequestsLimit.Store(max(int64(time.Until(until)/2), 1))
		e.spread.Store(min(int64(time.Until(until)/2), int64(e.conns.Load())*spreadPerConn))
	}
	e.drain()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), e.Close())
	}
}

// Close closes all listeners and connections at once. It does not wait for handlers that block; their connections are closed
// while they run.
func (e *Engine) Close() error {
	e.forced.Store(true)
	e.drain().Wait()
	if e.away.Load() == 0 {
		<-e.done
	}
	return nil
}

// drain begins the end of the engine and makes every loop check its connections. The group is done when all loops have done that.
func (e *Engine) drain() *sync.WaitGroup {
	e.closeListeners()
	e.draining.Store(true)
	return e.postToAll(msgSweep)
}

// postToAll posts a message to every loop. The group is done when all loops have handled the message.
func (e *Engine) postToAll(kind messageKind) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for _, l := range e.loops {
		all.Add(1)
		if !l.post(message{kind: kind, done: all}) {
			all.Done()
		}
	}
	return all
}

// loopEnded counts an ended loop; after the last one the engine is done.
func (e *Engine) loopEnded() {
	if e.running.Add(-1) == 0 {
		e.workers.close()
		e.monitor.end()
		close(e.done)
	}
}

// broadcast posts m to all loops.
func (e *Engine) broadcast(m message) {
	for _, l := range e.loops {
		l.post(m)
	}
}

// Stats is a snapshot of an engine's counts.
type Stats struct {
	Conns        int   // open connections
	ConnsPerLoop []int // by loop
	Accepts      uint64
	AcceptPauses uint64 // times that accepting stopped because there were no descriptors or MaxConns was reached
	Takeovers    uint64 // loops taken over from a driver that blocked
	Away         int    // connections with a detached driver or a worker
	WorkersBusy  int    // calls that count against MaxWorkers, including those not on a worker
	WorkersIdle  int
	WorkersMost  int // maximum of busy workers
	JobsQueued   int

	Handshakes       int // connections with a running handshake
	HandshakesQueued int // connections that wait for their handshake

	SecureBytes int64 // estimated memory of TLS for connections whose handshake is complete

	// Each pair is the longest wait of the last one to two seconds, and the longest wait ever.
	LoopWait, LoopWaitMost   time.Duration // of a readable connection for its loop
	QueueWait, QueueWaitMost time.Duration // of a queued job for a worker

	PendingBytes int64 // memory of output that peers have not received yet
	PendingConns int   // connections with such output, which are not read until it is sent

	AcceptPaused time.Duration // time since accepting paused, 0 if it is not paused
}

// Stats returns the engine's counts. Safe for concurrent use.
func (e *Engine) Stats() Stats {
	s := Stats{
		Accepts:      e.accepts.Load(),
		AcceptPauses: e.acceptPauses.Load(),
		Takeovers:    e.takeovers.Load(),
		Away:         int(e.away.Load()),
		PendingBytes: e.pending(),
		PendingConns: int(e.shared.n.Load()),
	}
	s.SecureBytes = e.secured.Load() * secureMemory
	s.Handshakes, s.HandshakesQueued = e.handshakes.counts()
	now := e.now()
	if e.pausedLoops.Load() > 0 {
		s.AcceptPaused = max(time.Duration(now-e.pausedSince.Load()), 1)
	}
	for _, l := range e.loops {
		n := int(l.count.Load())
		s.Conns += n // not e.conns, which includes reservations of loops that are about to accept
		s.ConnsPerLoop = append(s.ConnsPerLoop, n)
		s.LoopWait = max(s.LoopWait, l.waits.recent(now))
		s.LoopWaitMost = max(s.LoopWaitMost, time.Duration(l.waits.most.Load()))
	}
	w := &e.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	s.WorkersIdle = len(w.idle)
	s.WorkersBusy = w.busy()
	s.WorkersMost = w.most()
	s.JobsQueued = w.line.size()
	s.QueueWait, s.QueueWaitMost = w.line.waits.recent(now), time.Duration(w.line.waits.most.Load())
	return s
}
