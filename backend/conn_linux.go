//go:build linux && !race

package backend

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// maxAtOnce is the maximum number of bytes that one system call copies. The scheduler cannot take the processor from
// a goroutine in such a call.
const maxAtOnce = 64 << 10

// conn is a connection whose reads and writes bypass the scheduler. It has the other methods of the wrapped connection.
type conn struct {
	net.Conn
	raw           syscall.RawConn
	reads, writes direction
}

// direction is the state of reading or of writing.
type direction struct {
	mu    sync.Mutex         // held during a Read or a Write
	rest  []byte             // memory that is still to be filled or sent
	n     int                // result of the last system call
	errno syscall.Errno      // error of the last system call
	try   func(uintptr) bool // argument of RawConn.Read or Write; made once
}

func wrap(c net.Conn) net.Conn {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return c
	}
	if network := c.LocalAddr().Network(); network != "tcp" && network != "unix" {
		return c // not a stream: a read returns one message
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return c // the connection is closed
	}
	w := &conn{Conn: c, raw: raw}
	w.reads.try, w.writes.try = w.reads.recv, w.writes.send
	return w
}

// recv reads once. It returns false to wait until the descriptor can be read.
func (d *direction) recv(fd uintptr) bool {
	d.n, d.errno = recv(fd, d.rest[:min(len(d.rest), maxAtOnce)])
	return d.errno != syscall.EAGAIN
}

// send writes until all of rest is sent. It returns false to wait until the descriptor can be written.
func (d *direction) send(fd uintptr) bool {
	for len(d.rest) > 0 {
		d.n, d.errno = send(fd, d.rest[:min(len(d.rest), maxAtOnce)])
		if d.errno != 0 {
			return d.errno != syscall.EAGAIN
		}
		d.rest = d.rest[d.n:]
	}
	return true
}

func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return c.Conn.Read(b)
	}
	d := &c.reads
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rest, d.errno = b, 0
	err := c.raw.Read(d.try)
	d.rest = nil
	switch {
	case err != nil || d.errno != 0:
		return 0, c.failed("read", "recvfrom", err, d.errno)
	case d.n == 0:
		return 0, io.EOF
	}
	return d.n, nil
}

func (c *conn) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return c.Conn.Write(b)
	}
	d := &c.writes
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rest, d.errno = b, 0
	err := c.raw.Write(d.try)
	n := len(b) - len(d.rest)
	d.rest = nil
	if err != nil || d.errno != 0 {
		return n, c.failed("write", "sendto", err, d.errno)
	}
	return n, nil
}

// failed returns the error of an operation in the form of package net. err is the error of waiting, or else errno is the
// error of the system call.
func (c *conn) failed(op, call string, err error, errno syscall.Errno) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		e.Op = op // not raw-read, which RawConn reports
		return e
	}
	if err == nil {
		err = os.NewSyscallError(call, errno)
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
