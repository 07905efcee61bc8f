package stdhttp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peerOf returns the number of unread bytes of a connection, whether the peer has closed its side, and whether the
// connection is lost.
func peerOf(c net.Conn) (unread int, done, lost bool) {
	control(c, func(fd int) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if n, err := unix.Poll(fds, 0); n != 1 || err != nil {
			return
		}
		events := fds[0].Revents
		done, lost = events&unix.POLLRDHUP != 0, events&(unix.POLLHUP|unix.POLLERR) != 0
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			unread = n
		} else {
			done = false
		}
	})
	return unread, done, lost
}

// unreadOf returns the number of unread bytes of a connection.
func unreadOf(c net.Conn) (unread int) {
	control(c, func(fd int) {
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			unread = n
		}
	})
	return unread
}

// silentFor returns the time since the last input of a connection, or 0 if it is unknown.
func silentFor(c net.Conn) (d time.Duration) {
	control(c, func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			d = time.Duration(info.Last_data_recv) * time.Millisecond
		}
	})
	return d
}

// hasBacklog reports whether a connection waits in the backlog of a listener.
func hasBacklog(ln net.Listener) (has bool) {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		has = err == nil && n > 0
	})
	return has && err == nil
}
