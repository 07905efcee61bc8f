package stdhttp

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf returns how many bytes of a connection are here and unread, whether its peer has
// finished sending, and whether it is lost.
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

// unreadOf returns how many bytes of a connection are here and unread.
func unreadOf(c net.Conn) (unread int) {
	control(c, func(fd int) {
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			unread = n
		}
	})
	return unread
}
