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
// until f reports that it has seen enough. It reports whether it did; also where that cannot be told: more may come, or
// there is more than aheadMost.
func (c *Conn) Ahead(f func(piece []byte) (enough bool)) bool {
	fds := []unix.PollFd{{Fd: c.fd, Events: unix.POLLRDHUP}}
	if c.secure() != nil {
		return true
	}
	if n, err := unix.Poll(fds, 0); n != 1 || err != nil {
		return true
	}
	pool := &c.loop.e.buffers
	buf := pool.scratch(aheadPiece)
	defer pool.put(buf)
	piece := buf.b[:aheadPiece]
	var into [][]byte
	for skip := 0; skip < aheadMost; {
		into = into[:0]
		for left := skip; left > 0; left -= aheadPiece { // what is skipped goes to the same memory
			into = append(into, piece[:min(left, aheadPiece)])
		}
		into = append(into, piece)
		n, _, _, _, err := unix.RecvmsgBuffers(int(c.fd), into, nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err != nil:
			return true
		case n <= skip:
			return false
		case f(piece[:n-skip]):
			return true
		}
		skip = n
	}
	return true
}

const (
	// aheadPiece is how much is looked at at once, in bytes.
	aheadPiece = 64 << 10
	// aheadMost is about how much is looked at in all, in bytes: for each piece the system copies those before it, too, and
	// where it keeps tens of megabytes that would take seconds.
	aheadMost = 4 << 20
)
