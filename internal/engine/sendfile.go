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
	// maxSendfile bounds one sendfile call, in bytes. The kernel sends less when the
	// socket is full; the bound keeps a fast peer from holding a thread for a whole
	// large file.
	maxSendfile = 4 << 20
	// inMemory bounds one that the runtime does not know of.
	inMemory = 512 << 10
)

// SendFile sends the next n bytes of f, a regular file, from its current offset,
// behind all output pending so far, and blocks as Write does. Without TLS the bytes do not
// pass through the process.
// Like Write it does not look at d.Out and calls [Driver.Detach] first. It
// returns how many bytes went out, with io.ErrUnexpectedEOF if f was shorter.
func (c *Conn) SendFile(f *os.File, n int64, timeout time.Duration) (sent int64, err error) {
	c.driver.Detach()
	t := c.useTLS()
	defer c.doneTLS(t)
	if err := c.flushPending(timeout); err != nil {
		return 0, err
	}
	if n > mostUnsent {
		_ = boundUnsent(c.fd, c.driver.engine.fileUnsent())
		defer func() {
			c.flags &^= flagUnbounded
			_ = boundUnsent(c.fd, mostUnsent)
		}()
	}
	if c.flags&flagCloseNow != 0 {
		return 0, net.ErrClosed
	}
	if t != nil {
		return c.sendFileTLS(t, f, n, timeout)
	}
	until := c.driver.engine.patience(timeout)
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("engine: sendfile: %w", err)
	}
	start, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("engine: sendfile: %w", err)
	}
	for sent < n {
		var k int
		var errno error
		// Control keeps the descriptor open for the call, no longer.
		if err := raw.Control(func(fd uintptr) { k, errno = sendfile(c.fd, fd, start+sent, n-sent) }); err != nil {
			return sent, fmt.Errorf("engine: sendfile: %w", err)
		}
		switch {
		case k > 0:
			sent += int64(k)
			c.driver.taking.moved += int64(k)
			until = c.driver.engine.patience(timeout)
		case errno == nil:
			return sent, io.ErrUnexpectedEOF
		case errno == unix.EAGAIN:
			if err := c.awaitRoom(until); err != nil {
				return sent, err
			}
		default:
			c.flags |= flagCloseNow
			return sent, fmt.Errorf("engine: sendfile: %w", errno)
		}
	}
	return sent, nil
}

// sendfile sends at most n bytes of file from its offset, which is at.
//
// The runtime gives the processor of a call that lasts to another thread, and waking
// that costs more than all else here: what is in memory is sent without telling it,
// in pieces of some 50 µs. Only where a disk may have to be waited for is it told.
func sendfile(socket int32, file uintptr, at, n int64) (int, error) {
	piece := min(n, inMemory)
	if resident(file, at) && resident(file, at+piece-1) {
		return sendfileQuickly(socket, file, int(piece))
	}
	for {
		k, err := syscall.Sendfile(int(socket), int(file), nil, int(min(n, maxSendfile)))
		if err != syscall.EINTR {
			return k, err
		}
	}
}
