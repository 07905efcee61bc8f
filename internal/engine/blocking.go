//go:build linux

package engine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The methods of this file may wait. If a call of the handler uses its connection on several goroutines, they hold the lock given
// to [Driver.Share] when they call a method. A method releases the lock while it waits, so that one goroutine can write while
// another waits for input. At most one goroutine uses each direction at a time.

// A goroutine parks on a waiter until its connection is ready.
type waiter struct {
	woken chan struct{} // capacity 1: the loop never waits for the goroutine
	poke  chan struct{} // capacity 1: wake ends the wait of the goroutine for another reason than an event
	timer *time.Timer
}

var waiters = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &waiter{make(chan struct{}, 1), make(chan struct{}, 1), t}
}}

// The events that a goroutine may wait for.
const (
	toRead = iota
	toWrite
)

// parking is a driver's state for goroutines that wait for its connection. The loop wakes one goroutine, the one that parked
// first, and that goroutine wakes the other.
type parking struct {
	shared     sync.Locker // nil if only one goroutine uses the connection
	parked     [2]*waiter  // indexed by toRead and toWrite
	first      *waiter     // the element of parked that the loop wakes; set before state waiting
	noRead     bool        // the waiting Read must fail
	retime     [2]bool     // the waiting call must return, see Retime
	taking     meter       // measures the peer's reading while a goroutine waits to write
	readWaited int64       // the time that the last Read waited, in ns
}

// Share sets the lock for the goroutines that use the connection of d's call. They must hold the lock when they call a method of
// d or its Conn that may wait. The method releases the lock while it waits.
func (d *Driver) Share(lock sync.Locker) { d.shared = lock }

// timeoutAt converts a timeout of a method to a time of the engine's clock, 0 for no timeout.
func (e *Engine) timeoutAt(timeout time.Duration) int64 {
	if timeout <= 0 {
		return 0
	}
	return e.now() + int64(timeout)
}

// block parks the goroutine until an event arrives for the connection, or until the given time (0: without limit). The loop must not
// own the connection (see state.go). block may return early, so the caller must retry its system call.
func (c *Conn) block(wants int, until int64) error {
	c.flags |= flagLook // the loop will not get the events of this wait
	d := c.driver
	w := waiters.Get().(*waiter)
	defer waiters.Put(w)
	first := d.first == nil
	if first {
		d.first = w
		if !c.state.CompareAndSwap(away, waiting) {
			d.first = nil
			c.state.Store(away) // an event has arrived (state missed): the caller must look at the socket before it waits
			return nil
		}
	}
	d.parked[wants] = w
	yielded := d.engine.workers.yieldPermit(d)
	why := d.park(w, until)
	if yielded {
		d.engine.workers.regainPermit(d)
	}
	d.parked[wants] = nil
	retimed := d.retime[wants]
	d.retime[wants] = false
	if t := c.secure(); t != nil && t.used && wants == toWrite {
		t.noted.Store(true) // the loop has not checked this event for the peer's end
	}
	select {
	case <-w.poke: // a wake-up that arrived after the wait had ended for another reason
	default:
	}
	if first {
		if why != byEvent && !c.state.CompareAndSwap(waiting, away) {
			<-w.woken // the loop has already sent its event
			why = byEvent
		}
		c.state.Store(away)
		d.first = nil
		if other := d.parked[1-wants]; other != nil {
			other.wake()
		}
	}
	switch {
	case retimed:
		return ErrRetimed
	case why == byTime:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// The reasons for the end of a goroutine's wait.
const (
	byEvent = iota
	byOther
	byTime
)

// park waits on w, and releases the lock of Share meanwhile.
func (d *Driver) park(w *waiter, until int64) (why int) {
	defer d.conn.pauseTLS()()
	if d.shared != nil {
		d.shared.Unlock()
		defer d.shared.Lock()
	}
	var late <-chan time.Time
	if until != 0 {
		w.timer.Reset(time.Duration(max(until-d.engine.now(), 0)))
		defer w.timer.Stop()
		late = w.timer.C
	}
	select {
	case <-w.woken:
		return byEvent
	case <-w.poke:
		return byOther
	case <-late:
		return byTime
	}
}

func (w *waiter) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// StopReading makes a waiting Read fail with net.ErrClosed.
func (d *Driver) StopReading() {
	if w := d.parked[toRead]; w != nil {
		d.noRead = true
		w.wake()
	}
}

// ErrNoRoom is the error of Read and Write on a connection that is evicted because other connections need its memory. Output that
// its socket accepts at once may still be sent.
var ErrNoRoom = errors.New("engine: the connection is ended: it holds memory that others need")

// ErrRetimed is the error of a waiting method after [Driver.Retime]. The caller may call the method again, which then continues.
var ErrRetimed = errors.New("engine: the timeout of the call was changed")

// Retime makes a waiting Read, or with writing set a waiting write, return ErrRetimed, so that it is called again with another
// timeout.
func (d *Driver) Retime(writing bool) {
	wants := toRead
	if writing {
		wants = toWrite
	}
	if w := d.parked[wants]; w != nil {
		d.retime[wants] = true
		w.wake()
	}
}

// Read reads bytes that follow the input that was passed to the handler (the argument in of Handler.Data). It blocks for at most
// timeout (0: without limit). It calls [Driver.Detach] first. Errors: io.EOF, os.ErrDeadlineExceeded, ErrRetimed, ErrNoRoom,
// net.ErrClosed, or an error of the system call.
func (c *Conn) Read(p []byte, timeout time.Duration) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	d := c.driver
	d.Detach()
	w := readWait{timeout: timeout}
	if c.secure() != nil {
		c.beginWait(&w) // the time to decrypt many small records counts against the peer, too
	}
	n, err := c.read(p, &w)
	d.readWaited = 0
	if w.since != 0 {
		c.SetWorking(true)
		d.readWaited = d.engine.now() - w.since
	}
	return n, err
}

// WaitedToRead returns how long the last [Conn.Read] waited for the peer: 0 if its bytes had already arrived. With TLS it is
// the time of the whole read.
func (d *Driver) WaitedToRead() time.Duration { return time.Duration(d.readWaited) }

// readWait is the wait of a read. Most reads from a fast peer do not wait, and do not read the clock.
type readWait struct {
	timeout time.Duration // 0 for none
	since   int64         // the beginning of the wait, 0 before it
	until   int64         // the end of the wait, 0 for never
}

// beginWait starts the time of w, unless it has started.
func (c *Conn) beginWait(w *readWait) {
	if w.since == 0 {
		w.since, w.until = c.driver.engine.now(), c.driver.engine.timeoutAt(w.timeout)
		c.SetWorking(false)
	}
}

// blockToRead blocks until there may be input, or the time of w has passed.
func (c *Conn) blockToRead(w *readWait) error {
	d := c.driver
	c.beginWait(w)
	err := c.block(toRead, w.until)
	if d.noRead {
		d.noRead, err = false, net.ErrClosed
	}
	return err
}

// errNotHere is returned by a read that must not wait, if no input has arrived.
var errNotHere = errors.New("engine: no input has arrived")

// ReadHere is Read without waiting: if no input has arrived it returns 0 bytes and no error.
func (c *Conn) ReadHere(p []byte) (int, error) {
	c.driver.Detach()
	n, err := c.read(p, nil)
	if err == errNotHere {
		err = nil
	}
	return n, err
}

// Peek copies input that has arrived to p, without reading it, and returns its length; 0 on a connection with TLS. It does not
// wait.
func (c *Conn) Peek(p []byte) int {
	if c.secure() != nil {
		return 0
	}
	n, _ := peek(c.fd, p) // the next Read reports the error
	return n
}

// read implements Read. If w is nil, read does not wait: it returns errNotHere if no input has arrived.
func (c *Conn) read(p []byte, w *readWait) (int, error) {
	if t := c.useTLS(); t != nil {
		defer c.doneTLS(t)
		return c.readTLS(t, p, w)
	}
	for {
		if c.flags&flagCloseNow != 0 {
			return 0, net.ErrClosed
		}
		if c.ended() {
			return 0, ErrNoRoom
		}
		c.flags |= flagLook
		n, errno := recv(c.fd, p)
		switch {
		case n > 0:
			return n, nil
		case errno == 0:
			return 0, io.EOF
		case errno != unix.EAGAIN:
			return 0, c.ioError("read", errno)
		case w == nil:
			return 0, errNotHere
		}
		if err := c.blockToRead(w); err != nil {
			return 0, err
		}
	}
}

// Write sends p after all pending output. It blocks for at most timeout between signs of progress, or with timeout 0 as long as
// the peer reads at least at Config.MinWriteRate. Write does not send Driver.Out: call [Driver.Flush] first. Write calls
// [Driver.Detach] itself.
func (c *Conn) Write(p []byte, timeout time.Duration) (int, error) {
	c.driver.Detach()
	c.willSend(muchOutput) // the total is unknown
	t := c.useTLS()
	defer c.doneTLS(t)
	if err := c.flushPending(timeout); err != nil {
		return 0, err
	}
	if t != nil {
		return c.writeTLS(t, p, timeout)
	}
	e, sent := c.driver.engine, 0
	until := e.timeoutAt(timeout)
	for sent < len(p) {
		if c.flags&flagCloseNow != 0 {
			return sent, net.ErrClosed
		}
		n, errno := send(c.fd, p[sent:])
		sent += n
		c.driver.taking.moved += int64(n)
		if errno == 0 {
			until = e.timeoutAt(timeout)
			continue
		}
		if errno != unix.EAGAIN {
			return sent, c.ioError("write", errno)
		}
		if err := c.awaitRoom(until); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Flush sends Out and all pending output of the connection, and releases the memory of Out. It blocks as Write does. It calls
// Detach first.
func (d *Driver) Flush(timeout time.Duration) error {
	c := d.conn
	d.Detach()
	if c.ended() { // a call that never waits for its peer must notice the eviction, too
		c.flags |= flagCloseNow
	}
	c.willSend(muchOutput) // the total is unknown
	d.send(c)
	d.releaseOut()
	defer c.doneTLS(c.useTLS())
	return c.flushPending(timeout)
}

// flushPending blocks until the connection has no pending output.
func (c *Conn) flushPending(timeout time.Duration) error {
	e, left := c.driver.engine, int64(-1)
	var until int64
	for {
		switch {
		case c.flags&flagCloseNow != 0:
			return net.ErrClosed
		case c.out == nil || c.driver.drain(c):
			return nil
		case c.flags&flagCloseNow != 0:
			return net.ErrClosed
		}
		if c.out.bytes != left {
			left, until = c.out.bytes, e.timeoutAt(timeout)
		}
		if err := c.awaitRoom(until); err != nil {
			return err
		}
	}
}

// ioError closes the connection and returns an error that names the failed call.
func (c *Conn) ioError(op string, errno syscall.Errno) error {
	c.flags |= flagCloseNow
	return fmt.Errorf("engine: %s: %w", op, errno)
}

// Hijack takes the connection out of the engine and returns it as a net.Conn without deadlines; with TLS that is a *tls.Conn. It
// calls [Driver.Detach] first. d.Out must be empty. The caller must keep the input that precedes the input of the net.Conn: the
// unconsumed part of in, then [Conn.Unread]. Handler.Closed is called when the current call has returned.
func (c *Conn) Hijack() (net.Conn, error) {
	if c.flags&flagCloseNow != 0 {
		return nil, net.ErrClosed
	}
	c.driver.Detach()
	c.driver.Answering()
	t := c.useTLS()
	defer c.doneTLS(t)
	if err := c.flushPending(0); err != nil {
		return nil, err
	}
	c.ReleaseReservation()
	if t == nil {
		return c.takeSocket()
	}
	if t.phase != tlsOpen {
		return nil, net.ErrClosed
	}
	socket, secure, err := c.takeSecure(t)
	if err != nil {
		return nil, err
	}
	return secure(socket), nil
}

// takeSocket takes the socket from the engine. The connection is closed when the current call returns.
func (c *Conn) takeSocket() (net.Conn, error) {
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("engine: hijack: %w", err)
	}
	f := os.NewFile(uintptr(fd), "hijacked")
	defer f.Close()
	probing := keepAliveOf(fd) // package net sets its own default
	nc, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("engine: hijack: %w", err)
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		if err := tcp.SetKeepAliveConfig(probing); err != nil {
			return nil, errors.Join(fmt.Errorf("engine: hijack: %w", err), nc.Close())
		}
	}
	// The loop will still close the descriptor c.fd. So c.fd becomes a duplicate of another descriptor, and the socket is closed
	// by the Close of the hijacker.
	_ = c.loop.ctl(unix.EPOLL_CTL_DEL, c.fd, 0, 0, 0)
	c.flags |= flagCloseNow
	if err := unix.Dup3(int(c.loop.waker), int(c.fd), unix.O_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("engine: hijack: %w", err), nc.Close())
	}
	return c.relayed(nc), nil
}
