//go:build linux

package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Upstream is a server that answers four bytes with the same four bytes. The bytes are a number of microseconds, after which
// it answers. A client of this server waits in the same way as a client of a database, but for a known time.
type Upstream struct {
	Addr  string
	Ready func(addr net.Addr) // called when the server is listening
}

// upstreamPoll is the interval at which the server checks whether it must end.
const upstreamPoll = 100 * time.Millisecond

// An owed is a response that is sent later.
type owed struct {
	due  time.Time
	conn int
	word [4]byte
}

// A delayer is a server with one thread. It uses no goroutines, because their timers would be late by up to a millisecond.
type delayer struct {
	polled []unix.PollFd // the first element is the listener
	owed   []owed
}

// Run serves until ctx ends.
func (u Upstream) Run(ctx context.Context) error {
	ln, err := net.Listen("tcp", u.Addr)
	if err != nil {
		return err
	}
	defer ln.Close()
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer file.Close()
	u.Ready(ln.Addr())
	runtime.LockOSThread() // the goroutine stays locked, so that the thread ends with it and its timer slack is not inherited by other goroutines
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set timer slack: %w", err)
	}
	d := &delayer{polled: []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}}
	defer d.close()
	for ctx.Err() == nil {
		if err := d.serveNext(); err != nil {
			return err
		}
	}
	return nil
}

// serveNext waits until a request arrives or a response is due, and handles it.
func (d *delayer) serveNext() error {
	wait := upstreamPoll
	if len(d.owed) > 0 {
		first := slices.MinFunc(d.owed, func(a, b owed) int { return a.due.Compare(b.due) })
		wait = min(max(time.Until(first.due), 0), wait)
	}
	timeout := unix.NsecToTimespec(int64(wait))
	if _, err := unix.Ppoll(d.polled, &timeout, nil); err != nil && err != unix.EINTR {
		return fmt.Errorf("poll: %w", err)
	}
	now := time.Now()
	for i := len(d.polled) - 1; i >= 0; i-- {
		if d.polled[i].Revents == 0 {
			continue
		}
		if i == 0 {
			d.accept()
		} else if !d.read(int(d.polled[i].Fd), now) {
			d.forget(i)
		}
	}
	d.owed = slices.DeleteFunc(d.owed, func(o owed) bool {
		if now.Before(o.due) {
			return false
		}
		_, _ = unix.Write(o.conn, o.word[:]) // the client may have closed the connection
		return true
	})
	return nil
}

// accept accepts a connection. If the client has already closed it, this is not an error.
func (d *delayer) accept() {
	fd, _, err := unix.Accept4(int(d.polled[0].Fd), unix.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	d.polled = append(d.polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
}

// read reads a request. It returns false if the connection has ended. A request has four bytes, which arrive together.
func (d *delayer) read(fd int, now time.Time) bool {
	o := owed{conn: fd}
	if n, err := unix.Read(fd, o.word[:]); err != nil || n != len(o.word) {
		return false
	}
	o.due = now.Add(time.Duration(binary.BigEndian.Uint32(o.word[:])) * time.Microsecond)
	d.owed = append(d.owed, o)
	return true
}

func (d *delayer) forget(i int) {
	fd := int(d.polled[i].Fd)
	unix.Close(fd)
	d.polled = slices.Delete(d.polled, i, i+1)
	d.owed = slices.DeleteFunc(d.owed, func(o owed) bool { return o.conn == fd })
}

func (d *delayer) close() {
	for len(d.polled) > 1 {
		d.forget(len(d.polled) - 1)
	}
}
