//go:build linux

package engine

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxSendfile bounds one sendfile call, in bytes. The kernel sends less when the socket is full. The bound limits how long
	// a fast peer with a large file occupies a thread.
	maxSendfile = 4 << 20
	// inMemory bounds a sendfile call that is hidden from the runtime, in bytes.
	inMemory = 512 << 10
)

// SendFile sends the next n bytes of f, a regular file, from its current offset, after all pending output. It blocks as Write
// does. Without TLS the bytes do not pass through the process. Like Write, SendFile does not send Driver.Out and calls
// [Driver.Detach] first. It returns the number of bytes sent. If f ends before n bytes, the error is io.ErrUnexpectedEOF.
func (c *Conn) SendFile(f *os.File, n int64, timeout time.Duration) (sent int64, err error) {
	c.driver.Detach()
	t := c.useTLS()
	defer c.doneTLS(t)
	if err := c.flushPending(timeout); err != nil {
		return 0, err
	}
	if n > maxUnsent {
		_ = boundUnsent(c.fd, c.driver.engine.fileUnsent())
		defer func() {
			c.flags &^= flagUnbounded
			_ = boundUnsent(c.fd, maxUnsent)
		}()
	}
	if c.flags&flagCloseNow != 0 {
		return 0, net.ErrClosed
	}
	if t != nil {
		return c.sendFileTLS(t, f, n, timeout)
	}
	until := c.driver.engine.timeoutAt(timeout)
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("engine: sendfile: %w", err)
	}
	start, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("engine: sendfile: %w", err)
	}
	var seen seenInMemory
	for sent < n {
		var k int
		var errno error
		// Control keeps the descriptor open during the call.
		if err := raw.Control(func(fd uintptr) { k, errno = sendfile(c.fd, fd, start+sent, n-sent, &seen) }); err != nil {
			return sent, fmt.Errorf("engine: sendfile: %w", err)
		}
		switch {
		case k > 0:
			sent += int64(k)
			c.driver.taking.moved += int64(k)
			until = c.driver.engine.timeoutAt(timeout)
		case errno == nil:
			return sent, io.ErrUnexpectedEOF
		case errno == unix.EAGAIN:
			if err := c.awaitRoom(until); err != nil {
				return sent, err
			}
			seen = seenInMemory{} // the wait may have been long
		default:
			c.flags |= flagCloseNow
			return sent, fmt.Errorf("engine: sendfile: %w", errno)
		}
	}
	return sent, nil
}

// sendfile sends at most n bytes of file from the offset at, which is also its current offset.
//
// During a long call the runtime gives the processor to another thread, and waking that thread costs more than the rest of the
// call. So data in memory is sent by calls of about 50 µs that the runtime does not know of. The runtime is informed only of
// calls that may wait for a disk.
func sendfile(socket int32, file uintptr, at, n int64, seen *seenInMemory) (int, error) {
	if piece := seen.piece(file, at, n); piece > 0 {
		return sendfileQuickly(socket, file, int(piece))
	}
	for {
		k, err := syscall.Sendfile(int(socket), int(file), nil, int(min(n, maxSendfile)))
		if err != syscall.EINTR {
			return k, err
		}
	}
}

// seenInMemory is a range of a file whose first and last byte were found in memory, so that the whole range is assumed to be in
// memory. The check is made once for each piece, and takes a twentieth of the time to send it.
type seenInMemory struct{ from, to int64 }

// piece returns how many of the next n bytes of file from at may be sent in one call, or 0 if they are not in memory.
func (s *seenInMemory) piece(file uintptr, at, n int64) int64 {
	known := s.from < s.to && at >= s.from && at <= s.to
	if most := min(n, inMemory); !known || s.to-at < (most+1)/2 {
		if !known && !resident(file, at) || !resident(file, at+most-1) {
			*s = seenInMemory{}
			return 0
		}
		*s = seenInMemory{at, at + most}
	}
	return min(s.to-at, n)
}
