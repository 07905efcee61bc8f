//go:build linux

package engine

import "golang.org/x/sys/unix"

// A peer that asks for much at once and does not read is not worth the work. While the kernel holds unsent answers to earlier
// requests of a connection, its further pipelined requests are not begun. To the rest of the engine this state is pending
// output of no bytes. A peer that reads loses nothing: the check is made only when a full output has been sent and more
// requests are present, and bytes in transit on the network do not count.

const (
	// maxUnsent bounds the answers that the kernel holds for a connection, in bytes, beyond those that may be in transit on
	// the network. The kernel's own bound is some megabytes: a thousand clients that ask and do not read would make it hold
	// gigabytes, which a control group counts as memory of the process. It must not be less than common answers, which are sent
	// in one call.
	maxUnsent = 256 << 10

	// The bound for files is between these, see fileUnsent.
	minFileUnsent   = 1 << 20
	maxFileUnsent   = 4 << 20
	fileUnsentShare = 64

	// unreadBytes is the number of unsent bytes from which a peer counts as not reading its answers.
	unreadBytes = 16 << 10
)

// boundUnsent bounds the bytes that the kernel holds unsent for a TCP socket, or for the sockets that a listener accepts. A
// socket becomes writable when half of the bound is left. A failure costs only kernel memory.
func boundUnsent(fd int32, bytes int) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes)
}

// fileUnsent is maxUnsent for files. Their unsent bytes are in the system's cache, where they would be anyway, and each wait
// for room costs. But a control group is charged for them as for other output. So the bound is one part in fileUnsentShare of
// the budget, which is large if memory is.
func (e *Engine) fileUnsent() int {
	return int(min(max(e.cfg.Budget.Bound()/fileUnsentShare, minFileUnsent), maxFileUnsent))
}

// muchOutput is the length of an answer, in bytes, from which a connection's bound is worth a system call. To set it for each
// accepted connection would slow short connections down by a sixth.
const muchOutput = 32 << 10

// willSend bounds the kernel's share of c's output, if c has not inherited the bound from its listener and the next n bytes are
// many. It also lets output in many pieces be sent without a wait for the acknowledgement of each.
func (c *Conn) willSend(n int) {
	if c.flags&flagUnbounded != 0 && n >= muchOutput {
		c.flags &^= flagUnbounded
		_ = boundUnsent(c.fd, maxUnsent)
		_ = unix.SetsockoptInt(int(c.fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
}

// notSent returns the number of bytes written to the socket that the kernel has not sent at least once, or 0 if that is
// unknown.
func (c *Conn) notSent() int {
	n, err := unix.IoctlGetInt(int(c.fd), unix.SIOCOUTQNSD)
	if err != nil {
		return 0
	}
	return n
}

// leftUnread reports whether c's peer leaves its answers unread. Then c waits, with empty pending output, until the peer has
// taken them.
func (d *Driver) leftUnread(c *Conn) bool {
	if c.notSent() < unreadBytes || boundUnsent(c.fd, 2*unreadBytes) != nil {
		return false
	}
	c.out = d.newOutQueue(c)
	c.out.unread = true
	c.flags |= flagWantOut
	c.lookAgain()
	return true
}

// takenUp reports whether the peer of c, which waits because of leftUnread, has taken its answers or need not. If the peer has
// gone, c is marked for closing.
func (c *Conn) takenUp() bool {
	if c.flags&flagPeerDone != 0 && c.hungUp() {
		c.flags |= flagCloseNow
		return false
	}
	if c.flags&flagCloseAfter == 0 && c.notSent() >= unreadBytes {
		return false
	}
	_ = boundUnsent(c.fd, maxUnsent)
	return true
}

// hungUp reports whether the connection is over in both directions.
func (c *Conn) hungUp() bool {
	fds := [1]unix.PollFd{{Fd: c.fd}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}
