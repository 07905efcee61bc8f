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

// Upstream is a server that answers four bytes with the same four bytes, as many microseconds later as they say. A
// client that waits for it is parked as one that waits for a database, for a time that is known.
type Upstream struct {
	Addr  string
	Ready func(addr net.Addr) // is called when it listens
}

// upstreamPoll is how often the server looks whether it is to end.
const upstreamPoll = 100 * time.Millisecond

// owed is an answer that is due later.
type owed struct {
	due  time.Time
	conn int
	word [4]byte
}

// delayer is a server of one thread: goroutines and their timers would be late by up to a millisecond.
type delayer struct {
	polled []unix.PollFd // the listener first
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
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its timer slack with it
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set timer slack: %w", err)
	}
	d := &delayer{polled: []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}}
	defer d.close()
	for ctx.Err() == nil {
		if err := d.turn(); err != nil {
			return err
		}
	}
	return nil
}

// turn waits for a request or until an answer is due, and serves it.
func (d *delayer) turn() error {
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
		_, _ = unix.Write(o.conn, o.word[:]) // a client that has gone misses nothing
		return true
	})
	return nil
}

// accept takes a connection. One that has gone already is no error.
func (d *delayer) accept() {
	fd, _, err := unix.Accept4(int(d.polled[0].Fd), unix.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	d.polled = append(d.polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
}

// read takes a request. It reports false when the connection is over. A request of four bytes comes in one piece.
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
