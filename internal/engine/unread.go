//go:build linux

package engine

import "golang.org/x/sys/unix"

// The engine does not work ahead for a peer that sends many requests at once and does not read the answers. While the kernel
// holds unsent answers to earlier requests of a connection, its further pipelined requests are not begun. The rest of the engine
// sees this state as pending output of zero bytes. A peer that reads is not delayed: the check is made only when a full output
// has been sent and more requests have arrived, and bytes in transit on the network do not count.

const (
	// maxUnsent bounds the answers that the kernel holds for a connection, in bytes, beyond those that may be in transit on the
	// network. The kernel's own bound is some megabytes: a thousand clients that send requests and do not read would make the
	// kernel hold gigabytes, which a control group counts as memory of the process. maxUnsent must not be less than the size of
	// common answers, which are sent in one call.
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

// fileUnsent is maxUnsent for files. A larger bound saves waits for room, and the unsent bytes of a file are in the system's
// cache anyway. But a control group is charged for them as for other output. So the bound is one part in fileUnsentShare of the
// budget, within limits.
func (e *Engine) fileUnsent() int {
	return int(min(max(e.cfg.Budget.Bound()/fileUnsentShare, minFileUnsent), maxFileUnsent))
}

// muchOutput is the length of an answer, in bytes, from which setting the bound of a connection is worth a system call. A call
// for each accepted connection would slow down short connections by a sixth.
const muchOutput = 32 << 10

// willSend is called before n bytes are sent. If n is large, and c has not inherited the bound from its listener, it bounds the
// output that the kernel holds for c. It also sets TCP_NODELAY, so that output in many pieces does not wait for acknowledgements.
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

// leftUnread reports whether c's peer leaves its answers unread. If so, c waits, with empty pending output, until the peer has
// read them.
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

// takenUp reports whether c, which waits because of leftUnread, may continue: the peer has read its answers, or c will be closed
// after its output. If the peer has hung up, takenUp marks c for closing and returns false.
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
