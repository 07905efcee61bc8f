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

// The methods of this file wait. While a call of the handler uses its connection
// from several goroutines, these take turns by the lock given to [Driver.Share], and
// what waits lets go of it meanwhile: one may write while another waits for input.
// Each direction is one goroutine's at a time.

// waiter is what a goroutine parks on until its connection is ready.
type waiter struct {
	woken chan struct{} // capacity 1: the loop never waits for the goroutine
	poke  chan struct{} // capacity 1: another goroutine has it look again
	timer *time.Timer
}

var waiters = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &waiter{make(chan struct{}, 1), make(chan struct{}, 1), t}
}}

// What a goroutine waits for.
const (
	toRead = iota
	toWrite
)

// parking is a driver's part in this: who waits for its connection. The loop
// wakes one goroutine, the one that came first, and that one the other.
type parking struct {
	turns      sync.Locker // nil if only one goroutine uses the connection
	parked     [2]*waiter  // by what they wait for
	first      *waiter     // the one of parked that the loop wakes; set before state waiting
	noRead     bool        // the Read that waits is to fail
	retime     [2]bool     // what waits is to return, see Retime
	taking     meter       // what the peer takes while one waits to write
	readWaited int64       // how long the last Read waited, in ns
}

// Share has the goroutines that use the connections of d's calls take turns: lock is
// held when they call a method of d or its Conn that may wait, and is free while
// that waits.
func (d *Driver) Share(lock sync.Locker) { d.turns = lock }

// patience turns a timeout of a method into the time at which it ends, 0 for never.
func (e *Engine) patience(timeout time.Duration) int64 {
	if timeout <= 0 {
		return 0
	}
	return e.now() + int64(timeout)
}

// block parks the goroutine until an event comes for the connection, which must be
// away, or until it is the given time (0: for ever). It may return early; the caller
// tries its system call again.
func (c *Conn) block(wants int, until int64) error {
	c.flags |= flagLook // the events seen here are not seen by the loop
	d := c.driver
	w := waiters.Get().(*waiter)
	defer waiters.Put(w)
	first := d.first == nil
	if first {
		d.first = w
		if !c.state.CompareAndSwap(away, waiting) {
			d.first = nil
			c.state.Store(away) // was missed: look before waiting
			return nil
		}
	}
	d.parked[wants] = w
	lent := d.engine.workers.lend(d)
	why := d.park(w, until)
	if lent {
		d.engine.workers.regain(d)
	}
	d.parked[wants] = nil
	retimed := d.retime[wants]
	d.retime[wants] = false
	if t := c.secure(); t != nil && t.used && wants == toWrite {
		t.noted.Store(true) // nobody else has seen what woke us
	}
	select {
	case <-w.poke: // it came too late to be what woke us
	default:
	}
	if first {
		if why != byEvent && !c.state.CompareAndSwap(waiting, away) {
			<-w.woken // the loop was faster
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

// What ends the wait of a goroutine.
const (
	byEvent = iota
	byOther
	byTime
)

// park waits on w, without the lock.
func (d *Driver) park(w *waiter, until int64) (why int) {
	defer d.conn.pauseTLS()()
	if d.turns != nil {
		d.turns.Unlock()
		defer d.turns.Lock()
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

// StopReading has a Read that waits fail with net.ErrClosed.
func (d *Driver) StopReading() {
	if w := d.parked[toRead]; w != nil {
		d.noRead = true
		w.wake()
	}
}

// ErrNoRoom is why Read and Write fail on a connection that is ended because others need
// the memory that it holds. What its socket takes at once may still be sent.
var ErrNoRoom = errors.New("engine: the connection is ended: it holds memory that others need")

// ErrRetimed is what a method that waits returns because of [Driver.Retime]. It may be
// called again, and goes on where it was.
var ErrRetimed = errors.New("engine: the time to wait for was changed")

// Retime has a Read that waits, or with writing set what waits to write, return
// ErrRetimed, so that it is called again with another timeout.
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

// Read reads from the connection itself, past what the handler was given as
// in, and blocks for at most timeout (0: for ever). It calls [Driver.Detach] first.
// Errors: io.EOF, os.ErrDeadlineExceeded, ErrRetimed, ErrNoRoom, net.ErrClosed or the system's.
func (c *Conn) Read(p []byte, timeout time.Duration) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	d := c.driver
	d.Detach()
	w := readWait{timeout: timeout}
	if c.secure() != nil {
		c.beginWait(&w) // opening many small records is time that the peer takes, too
	}
	n, err := c.read(p, &w)
	d.readWaited = 0
	if w.since != 0 {
		c.Working(true)
		d.readWaited = d.engine.now() - w.since
	}
	return n, err
}

// WaitedToRead returns how long the last [Conn.Read] waited for the peer: 0 if its bytes were here. With TLS it is the
// time of the whole read.
func (d *Driver) WaitedToRead() time.Duration { return time.Duration(d.readWaited) }

// readWait is the wait of a read. Most reads of a fast peer do not wait, and look at no clock.
type readWait struct {
	timeout time.Duration // 0 for none
	since   int64         // when the wait began, 0 before
	until   int64         // when it ends, 0 for never
}

// beginWait starts the time of w, unless it runs.
func (c *Conn) beginWait(w *readWait) {
	if w.since == 0 {
		w.since, w.until = c.driver.engine.now(), c.driver.engine.patience(w.timeout)
		c.Working(false)
	}
}

// blockToRead blocks until there may be something to read, or the time of w is over.
func (c *Conn) blockToRead(w *readWait) error {
	d := c.driver
	c.beginWait(w)
	err := c.block(toRead, w.until)
	if d.noRead {
		d.noRead, err = false, net.ErrClosed
	}
	return err
}

// errNotHere says that there is nothing to read, to a read that does not wait.
var errNotHere = errors.New("engine: nothing is here")

// ReadHere is Read that does not wait: where nothing has come it returns 0 bytes and no error.
func (c *Conn) ReadHere(p []byte) (int, error) {
	c.driver.Detach()
	n, err := c.read(p, nil)
	if err == errNotHere {
		err = nil
	}
	return n, err
}

// Peek copies what has come, without reading it, to p, and returns how much that is; 0 on a connection with TLS. It does not wait.
func (c *Conn) Peek(p []byte) int {
	if c.secure() != nil {
		return 0
	}
	n, _ := peek(c.fd, p) // a read finds out about errors
	return n
}

// read is Read; with a nil w it does not wait, and returns errNotHere.
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

// Write sends p behind all output pending so far and blocks for at most timeout
// between signs of progress, or with timeout 0 for as long as the peer takes
// Config.MinWriteRate. It does not look at d.Out: call [Driver.Flush] first. It
// calls [Driver.Detach] first.
func (c *Conn) Write(p []byte, timeout time.Duration) (int, error) {
	c.driver.Detach()
	c.willSend(muchOutput) // in the end, for all we know
	t := c.useTLS()
	defer c.doneTLS(t)
	if err := c.flushPending(timeout); err != nil {
		return 0, err
	}
	if t != nil {
		return c.writeTLS(t, p, timeout)
	}
	e, sent := c.driver.engine, 0
	until := e.patience(timeout)
	for sent < len(p) {
		if c.flags&flagCloseNow != 0 {
			return sent, net.ErrClosed
		}
		n, errno := send(c.fd, p[sent:])
		sent += n
		c.driver.taking.moved += int64(n)
		if errno == 0 {
			until = e.patience(timeout)
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

// Flush sends Out and all pending output of the connection, blocking as Write
// does, and gives the memory of Out back. It calls Detach first.
func (d *Driver) Flush(timeout time.Duration) error {
	c := d.conn
	d.Detach()
	if c.ended() { // it may never wait for its peer
		c.flags |= flagCloseNow
	}
	c.willSend(muchOutput) // in the end, for all we know
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
			left, until = c.out.bytes, e.patience(timeout)
		}
		if err := c.awaitRoom(until); err != nil {
			return err
		}
	}
}

// ioError ends the connection's use and names what failed.
func (c *Conn) ioError(op string, errno syscall.Errno) error {
	c.flags |= flagCloseNow
	return fmt.Errorf("engine: %s: %w", op, errno)
}

// Hijack takes the connection out of the engine and returns it as a
// net.Conn with all deadlines clear, a *tls.Conn if it is one with TLS. It calls [Driver.Detach] first. What of in
// was not consumed is the caller's to keep, and behind it [Conn.Unread]; d.Out must be empty.
// Handler.Closed follows when the present call returns.
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
	c.EndAhead()
	if t == nil {
		return c.takeSocket()
	}
	if t.phase != tlsOpen {
		return nil, net.ErrClosed
	}
	wire, secure, err := c.takeSecure(t)
	if err != nil {
		return nil, err
	}
	return secure(wire), nil
}

// takeSocket takes the socket from the engine. The connection is closed when the present
// call returns.
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
	// The number c.fd stays the loop's to close, but no longer names the socket, so
	// that the hijacker's Close is the last one.
	_ = c.loop.ctl(unix.EPOLL_CTL_DEL, c.fd, 0, 0, 0)
	c.flags |= flagCloseNow
	if err := unix.Dup3(int(c.loop.waker), int(c.fd), unix.O_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("engine: hijack: %w", err), nc.Close())
	}
	return c.relayed(nc), nil
}
