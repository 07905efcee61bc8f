//go:build linux

package engine

import (
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acceptBatch bounds the connections a loop accepts before it serves others.
const acceptBatch = 16

// acceptPause is how long a loop that found no free descriptor waits, unless a
// connection closes before.
const acceptPause = int64(time.Second)

// listener is a duplicated listening descriptor that every loop watches. The last
// loop to let go of it closes it.
type listener struct {
	fd    int32
	loops atomic.Int32
}

// newListener duplicates ln's descriptor.
func newListener(ln net.Listener) (*listener, error) {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("engine: serve: %T has no file descriptor", ln)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("engine: serve: %w", err)
	}
	fd := -1
	var dupErr error
	err = raw.Control(func(orig uintptr) {
		fd, dupErr = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = dupErr
	}
	if err != nil {
		return nil, fmt.Errorf("engine: serve: duplicate listener: %w", err)
	}
	if ln.Addr().Network() != "unix" {
		// Accepted sockets inherit it, which saves a call for each.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			closeFD(int32(fd))
			return nil, fmt.Errorf("engine: serve: set TCP_NODELAY: %w", err)
		}
	}
	return &listener{fd: int32(fd)}, nil
}

// acceptor is a loop's part in accepting.
type acceptor struct {
	listeners []*listener
	paused    bool
	resumeAt  int64 // when to try again, 0 for not before a connection closes
	addr      unix.RawSockaddrAny
}

func (l *loop) listen(ln *listener) {
	if l.e.draining.Load() {
		ln.letGo()
		return
	}
	l.acceptor.listeners = append(l.acceptor.listeners, ln)
	if !l.acceptor.paused {
		l.watchListener(len(l.acceptor.listeners) - 1)
	}
}

// watchListener is level-triggered: what one loop leaves in the backlog, any may take.
func (l *loop) watchListener(i int) {
	fd := l.acceptor.listeners[i].fd
	if err := l.ctl(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLEXCLUSIVE, int32(listenerSlot-i), 0); err != nil {
		l.e.cfg.Logger.Error("engine: cannot watch a listener", "err", err)
	}
}

// stopListening lets go of all listeners.
func (l *loop) stopListening() {
	a := &l.acceptor
	for _, ln := range a.listeners {
		if !a.paused {
			_ = l.ctl(unix.EPOLL_CTL_DEL, ln.fd, 0, 0, 0)
		}
		ln.letGo()
	}
	a.listeners = nil
	l.unpause()
}

func (ln *listener) letGo() {
	if ln.loops.Add(-1) == 0 {
		closeFD(ln.fd)
	}
}

// accept takes waiting connections from listener i and gives each to the loop
// that has the fewest. It reports true: d still drives the loop.
func (l *loop) accept(d *Driver, i int) bool {
	a := &l.acceptor
	if i >= len(a.listeners) || a.paused {
		return true // an event from before
	}
	e := l.e
	for range acceptBatch {
		if e.conns.Add(1) > int64(e.cfg.MaxConns) {
			e.conns.Add(-1)
			l.pauseAccept(0)
			return true
		}
		fd, errno := accept(a.listeners[i].fd, &a.addr)
		if errno != 0 {
			e.conns.Add(-1)
			return l.acceptFailed(errno)
		}
		e.accepts.Add(1)
		l.place(&Conn{fd: fd, slot: -1, peer: newPeerAddr(&a.addr)})
	}
	return true
}

// acceptFailed decides what an error of accept means. Most concern one
// connection only (accept(2), "Error handling"); it is gone, the next may do.
func (l *loop) acceptFailed(errno syscall.Errno) bool {
	switch errno {
	case unix.EAGAIN, unix.ECONNABORTED, unix.EPROTO, unix.EPERM, unix.ENETDOWN, unix.ENOPROTOOPT,
		unix.EHOSTDOWN, unix.ENONET, unix.EHOSTUNREACH, unix.EOPNOTSUPP, unix.ENETUNREACH:
	default: // no descriptors or memory, or the listener is broken
		l.pauseAccept(l.now + acceptPause)
		if l.e.mayLog(l.now) {
			l.e.cfg.Logger.Error("engine: accepting pauses", "err", errno)
		}
	}
	return true
}

// place gives an accepted connection to a loop: this one, unless another has
// clearly fewer, for moving a connection wakes the other loop.
func (l *loop) place(c *Conn) {
	least := l
	for _, other := range l.e.loops {
		if other.count.Load() < least.count.Load() {
			least = other
		}
	}
	if few := least.count.Load(); l.count.Load() <= few+few/16 {
		least = l
	}
	least.count.Add(1)
	if least != l {
		c.loop = least
		if least.post(message{kind: msgAdopt, conn: c}) {
			return
		}
		least.count.Add(-1)
		l.count.Add(1)
	}
	l.adopt(c)
}

// pauseAccept stops watching the listeners until a connection closes, or until
// resumeAt if that is not 0.
func (l *loop) pauseAccept(resumeAt int64) {
	a := &l.acceptor
	a.paused, a.resumeAt = true, resumeAt
	for _, ln := range a.listeners {
		_ = l.ctl(unix.EPOLL_CTL_DEL, ln.fd, 0, 0, 0)
	}
	e := l.e
	e.acceptPauses.Add(1)
	e.pausedLoops.Add(1)
	if resumeAt == 0 && e.conns.Load() < int64(e.cfg.MaxConns) {
		l.resumeAccept() // a connection closed before it could see the pause
	}
}

func (l *loop) unpause() {
	if l.acceptor.paused {
		l.acceptor.paused, l.acceptor.resumeAt = false, 0
		l.e.pausedLoops.Add(-1)
	}
}

// resumeAccept watches the listeners again after a pause.
func (l *loop) resumeAccept() {
	if !l.acceptor.paused {
		return
	}
	l.unpause()
	for i := range l.acceptor.listeners {
		l.watchListener(i)
	}
}
