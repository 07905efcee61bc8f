//go:build linux

package engine

import "golang.org/x/sys/unix"

// tlsRecord is about the most, in bytes, that was read and not passed on by TLS.
const tlsRecord = 32 << 10

// Lost reports whether the peer, of which so many bytes are still expected (-1: unknown), cannot
// send them: it is lost, or has finished sending before. It costs a system call or two.
func (c *Conn) Lost(left int64) bool {
	fds := []unix.PollFd{{Fd: c.fd, Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(fds, 0); n != 1 || err != nil {
		return false
	}
	if fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
		return true
	}
	unread, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ)
	if c.secure() != nil {
		unread += tlsRecord
	}
	return err == nil && left >= 0 && int64(unread) < left
}
