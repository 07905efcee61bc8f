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

// waiter is what a goroutine parks on until its connection is ready.
type waiter struct {
	ready chan struct{} // capacity 1: the loop never waits for the goroutine
	timer *time.Timer
}

var waiters = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &waiter{make(chan struct{}, 1), t}
}}

// block parks the goroutine until an event comes for the connection, which must be
// away, or timeout passes (0: for ever). It may return early; the caller tries its
// system call again.
func (c *Conn) block(timeout time.Duration) error {
	c.flags |= flagLook // the events seen here are not seen by the loop
	w := waiters.Get().(*waiter)
	defer waiters.Put(w)
	c.wait = w
	if !c.state.CompareAndSwap(away, waiting) {
		c.state.Store(away) // was missed: look before waiting
		return nil
	}
	if timeout <= 0 {
		<-w.ready
		c.state.Store(away)
		return nil
	}
	w.timer.Reset(timeout)
	defer w.timer.Stop()
	select {
	case <-w.ready:
	case <-w.timer.C:
		if c.state.CompareAndSwap(waiting, away) {
			return os.ErrDeadlineExceeded
		}
		<-w.ready // the loop was faster
	}
	c.state.Store(away)
	return nil
}

// Read reads from the connection itself, past what the handler was given as
// in, and blocks for at most timeout (0: for ever). It calls [Driver.Detach] first.
// Errors: io.EOF, os.ErrDeadlineExceeded, net.ErrClosed or the system's.
func (c *Conn) Read(p []byte, timeout time.Duration) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.flags&flagCloseNow != 0 {
		return 0, net.ErrClosed
	}
	c.driver.Detach()
	c.flags |= flagLook
	for {
		n, errno := recv(c.fd, p)
		switch {
		case n > 0:
			return n, nil
		case errno == 0:
			return 0, io.EOF
		case errno != unix.EAGAIN:
			return 0, c.ioError("read", errno)
		}
		if err := c.block(timeout); err != nil {
			return 0, err
		}
	}
}

// Write sends p behind all output pending so far and blocks for at most timeout
// (0: for ever) between signs of progress. It does not look at d.Out: call
// [Driver.Flush] first. It calls [Driver.Detach] first.
func (c *Conn) Write(p []byte, timeout time.Duration) (int, error) {
	c.driver.Detach()
	if err := c.flushPending(timeout); err != nil {
		return 0, err
	}
	sent := 0
	for sent < len(p) {
		n, errno := send(c.fd, p[sent:])
		sent += n
		if errno == 0 {
			continue
		}
		if errno != unix.EAGAIN {
			return sent, c.ioError("write", errno)
		}
		c.wantOut()
		if err := c.block(timeout); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Flush sends Out and all pending output of the connection, blocking for at
// most timeout (0: for ever) between signs of progress. It calls Detach first.
func (d *Driver) Flush(timeout time.Duration) error {
	c := d.conn
	d.Detach()
	d.send(c)
	return c.flushPending(timeout)
}

// flushPending blocks until the connection has no pending output.
func (c *Conn) flushPending(timeout time.Duration) error {
	for {
		switch {
		case c.flags&flagCloseNow != 0:
			return net.ErrClosed
		case c.out == nil || c.driver.drain(c):
			return nil
		}
		if c.flags&flagCloseNow == 0 {
			if err := c.block(timeout); err != nil {
				return err
			}
		}
	}
}

// ioError ends the connection's use and names what failed.
func (c *Conn) ioError(op string, errno syscall.Errno) error {
	c.flags |= flagCloseNow
	return fmt.Errorf("engine: %s: %w", op, errno)
}

// Hijack takes the connection out of the engine and returns it as a
// net.Conn with all deadlines clear. It calls [Driver.Detach] first. What of in
// was not consumed is the caller's to keep; d.Out must be empty.
// Handler.Closed follows when the present call returns.
func (c *Conn) Hijack() (net.Conn, error) {
	if c.flags&flagCloseNow != 0 {
		return nil, net.ErrClosed
	}
	c.driver.Detach()
	if err := c.flushPending(0); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("engine: hijack: %w", err)
	}
	f := os.NewFile(uintptr(fd), "hijacked")
	defer f.Close()
	nc, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("engine: hijack: %w", err)
	}
	// The number c.fd stays the loop's to close, but no longer names the socket, so
	// that the hijacker's Close is the last one.
	_ = c.loop.ctl(unix.EPOLL_CTL_DEL, c.fd, 0, 0, 0)
	c.flags |= flagCloseNow
	if err := unix.Dup3(int(c.loop.waker), int(c.fd), unix.O_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("engine: hijack: %w", err), nc.Close())
	}
	return nc, nil
}
