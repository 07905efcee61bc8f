//go:build linux

package engine

import "golang.org/x/sys/unix"

// A peer that asks for much at once and does not read is not worth the work: as long as the
// system holds unsent what was answered to earlier requests of a connection, the pipelined
// ones behind them are not begun. To the rest of the engine that is pending output, of
// no bytes. One that reads loses nothing by it, since it is only looked at when a full
// output has left and more is asked for, and what the network has under way does not count.

const (
	// mostUnsent bounds what the kernel holds of answers beyond what the network may have
	// under way, in bytes for each connection. Its own bound is some megabytes: a thousand
	// clients that ask and do not read would have it hold gigabytes, which a control
	// group counts as ours. It must not be less than common answers, which leave in one call.
	mostUnsent = 256 << 10

	// The same for files lies between these, see fileUnsent.
	leastFileUnsent = 1 << 20
	mostFileUnsent  = 4 << 20
	fileUnsentShare = 64

	// unreadBytes is how many unsent bytes say that a peer has not read what it was
	// answered.
	unreadBytes = 16 << 10
)

// boundUnsent sets how much the kernel holds unsent of a TCP socket, or of those that a
// listener accepts. A socket says that it takes output when half of it is left. Where it
// fails, nothing is lost but memory, which is the kernel's.
func boundUnsent(fd int32, bytes int) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes)
}

// fileUnsent is mostUnsent for files: what is unsent of them lies in the system's cache, where it would
// be anyway, and each wait for room costs. But a control group is charged for
// it as for other output. So it is one part in fileUnsentShare of the budget, which is large
// where memory is.
func (e *Engine) fileUnsent() int {
	return int(min(max(e.cfg.Budget.Bound()/fileUnsentShare, leastFileUnsent), mostFileUnsent))
}

// muchOutput is the length of an answer, in bytes, from which a connection's bound is worth a
// call. To set it for each as it is accepted would cost short connections a sixth.
const muchOutput = 32 << 10

// willSend sees to it that the kernel's share of c's output is bounded, if the listener has not
// passed the bound on and n bytes, which are about to be sent, are many. What is sent in many
// pieces must not wait for the peer to confirm each, either.
func (c *Conn) willSend(n int) {
	if c.flags&flagUnbounded != 0 && n >= muchOutput {
		c.flags &^= flagUnbounded
		_ = boundUnsent(c.fd, mostUnsent)
		_ = unix.SetsockoptInt(int(c.fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
}

// notSent returns how many bytes that were written to the socket the kernel has not
// sent once; 0 when that is unknown.
func (c *Conn) notSent() int {
	n, err := unix.IoctlGetInt(int(c.fd), unix.SIOCOUTQNSD)
	if err != nil {
		return 0
	}
	return n
}

// leftUnread reports whether c's peer leaves its answers unread. Then c waits, with
// empty pending output, until it has taken them.
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

// takenUp reports whether the peer of c, which waits as leftUnread says, has taken its
// answers, or need not. If it has gone, nobody will: c is marked for closing.
func (c *Conn) takenUp() bool {
	if c.flags&flagPeerDone != 0 && c.hungUp() {
		c.flags |= flagCloseNow
		return false
	}
	if c.flags&flagCloseAfter == 0 && c.notSent() >= unreadBytes {
		return false
	}
	_ = boundUnsent(c.fd, mostUnsent)
	return true
}

// hungUp reports whether the connection is over in both directions.
func (c *Conn) hungUp() bool {
	fds := [1]unix.PollFd{{Fd: c.fd}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}
