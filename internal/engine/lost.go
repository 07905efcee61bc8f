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

// Ahead calls f with what the peer of a connection without TLS, which has finished sending, has sent that was not read,
// until f reports that it has seen enough. It reports whether it did; also where that cannot be told, or more may come.
func (c *Conn) Ahead(f func(piece []byte) (enough bool)) bool {
	fds := []unix.PollFd{{Fd: c.fd, Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(fds, 0); n != 1 || err != nil || c.secure() != nil {
		return true
	}
	pool := &c.loop.e.buffers
	buf := pool.scratch(aheadPiece)
	defer pool.put(buf)
	piece := buf.b[:aheadPiece]
	for skip := 0; ; {
		// What is skipped goes to the same memory.
		var into [][]byte
		for left := skip; left > 0; left -= aheadPiece {
			into = append(into, piece[:min(left, aheadPiece)])
		}
		n, _, _, _, err := unix.RecvmsgBuffers(int(c.fd), append(into, piece), nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err != nil && err != unix.EAGAIN:
			return false
		case n <= skip || err != nil:
			return false
		case f(piece[:n-skip]):
			return true
		}
		skip = n
	}
}

// aheadPiece is how much is looked at at once, in bytes.
const aheadPiece = 64 << 10
