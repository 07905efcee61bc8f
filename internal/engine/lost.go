//go:build linux

package engine

import "golang.org/x/sys/unix"

// tlsRecord is the approximate maximum, in bytes, of input that TLS has read and not passed on.
const tlsRecord = 32 << 10

// Lost reports whether the peer is lost, or has finished sending although left more bytes of it are expected (-1: unknown). It
// costs one or two system calls.
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

// Ahead calls f with pieces of the unread input of a connection without TLS whose peer has finished sending, until f returns
// true. Ahead reports whether f has returned true. It also returns true if that is unknown: the peer may send more input, or
// there is more input than aheadMost.
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
		for left := skip; left > 0; left -= aheadPiece { // the skipped pieces all use the same memory
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
	// aheadPiece is the size of a piece, in bytes.
	aheadPiece = 64 << 10
	// aheadMost is the approximate maximum of all pieces, in bytes. For each piece the system copies the pieces before it, too,
	// which would take seconds for tens of megabytes.
	aheadMost = 4 << 20
)
