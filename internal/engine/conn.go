//go:build linux

package engine

import (
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A Conn is one accepted connection. Unless a method says otherwise it may
// only be used by the connection's owner: the goroutine in which the engine
// is calling the handler for it, until that call returns.
type Conn struct {
	// Proto is the handler's state for what is unfinished on this connection,
	// such as a body half received. A connection with a nil Proto, no kept input
	// and no pending output is idle: shutting down closes it at once.
	Proto any

	loop   *loop
	driver *Driver                           // during a call of the handler
	in     *buffer                           // input kept for later, nil if none
	out    *outQueue                         // output the socket did not take, nil if none
	acct   atomic.Pointer[admission.Account] // what it holds, nil for nothing: holder.go; the monitor reads it, too
	hangup hangupHook                        // any goroutine

	peer peerAddr
	port uint16 // the peer's

	// Count is the handler's too: how much it has served on this connection. For one of Parts it is the
	// engine's: how much was begun when it was served last.
	Count uint16

	fd    int32
	slot  int32         // index in loop.conns; the loop's
	gen   uint32        // tells this connection's events from those of the slot's former ones; see genSecure
	state atomic.Uint32 // see state.go; any goroutine

	deadline   uint32 // tick at which to call Timeout, 0 for none
	filed      uint32 // tick under which the wheel has it, 0 for none; the loop's
	mark       uint32 // away: filed at that time; else the stamp of its latest visit, 0: it is new
	prev, next int32  // neighbours in the wheel's slot; the loop's

	flags  connFlags
	queued bool // in loop.queue, loop.later or loop.noRoom; the loop's

	// Notes are the handler's, but that the engine reads Parts, Begun, Probes and Paused.
	Notes Note
}

// A Note is what a handler knows of a connection.
type Note uint8

const (
	// Parts: the connection is of many parts (part.go). When the engine begins to drain, Data is called
	// for it, and the handler ends it when nothing is left to do.
	Parts Note = 1 << iota

	// Begun: it is known what is spoken, for something was asked. Until then the connection is new, and has more
	// time when the engine drains.
	Begun

	// Prompt: its peer has taken at once what it was last expected to leave.
	Prompt

	// Probes: what it asks for is not known to be large, as its route is, and may begin as a probe where there is no room.
	Probes

	// asked: it has asked for room and been told to wait. The engine's.
	asked

	// Paused: nothing is read from the connection, not even while it lingers, until the handler takes the note away and
	// has the connection woken. What its peer sends stays with the system, which soon takes no more. A peer that is lost
	// meanwhile is noticed.
	Paused
)

type connFlags uint16

const (
	flagReadable   connFlags = 1 << iota // an edge came that was not read to its end
	flagPeerDone                         // epoll said that the peer has finished sending
	flagEOF                              // the end was read and Handler.EOF called
	flagAgain                            // kept input waits for Data, not for more input
	flagHandOff                          // kept input goes to a worker
	flagCloseAfter                       // close when out is empty
	flagLinger                           // ... but linger first
	flagLingering                        // our side is shut, input is discarded
	flagCloseNow                         // close without sending the rest
	flagWantOut                          // EPOLLOUT is in the interest set
	flagLook                             // the goroutine read or waited itself: giveBack must look
	flagUrgent                           // it goes before others to a worker
	flagAwaitsRoom                       // it is in loop.noRoom, or to be put there
	flagUnbounded                        // nothing bounds yet what the kernel holds unsent but itself, see unread.go
)

// hungUp are the events that say the peer will send no more.
const hungUp = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR

// interest returns the event mask the connection is registered with.
func (c *Conn) interest() uint32 {
	var mask uint32 = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	if c.flags&flagWantOut != 0 {
		mask |= unix.EPOLLOUT
	}
	return mask
}

// idle reports whether nothing is unfinished.
func (c *Conn) idle() bool {
	if c.Proto != nil || c.in != nil || c.out != nil {
		return false
	}
	t := c.secure()
	return t == nil || t.quiet()
}

// rests reports whether what the peer has sent is not to be read now.
func (c *Conn) rests() bool { return c.Notes&Paused != 0 && c.flags&flagAgain == 0 }

// over reports whether the connection is to be closed now.
func (c *Conn) over() bool {
	return c.flags&flagCloseNow != 0 || c.flags&flagCloseAfter != 0 && c.out == nil
}

// kept returns the input kept for later.
func (c *Conn) kept() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.b
}

// RemoteAddr returns the peer's address, the zero AddrPort for unix sockets.
// Safe for concurrent use.
func (c *Conn) RemoteAddr() netip.AddrPort { return netip.AddrPortFrom(c.peer.addr(), c.port) }

// Remote4 returns the peer's address as a number where it is one of IPv4, as most are.
func (c *Conn) Remote4() (ip uint32, ok bool) { return c.peer.addr4() }

// LocalAddr returns the address the connection was accepted on, the zero
// AddrPort for unix sockets. It costs a system call.
func (c *Conn) LocalAddr() netip.AddrPort {
	sa, err := unix.Getsockname(int(c.fd))
	if err != nil {
		return netip.AddrPort{}
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(addr6(sa.Addr, sa.ZoneId), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// SetDeadline asks for Handler.Timeout when after has passed, at the
// engine's coarse resolution (late by at most some 140 ms); zero
// asks for none. It replaces the deadline set before. While output is
// pending, Config.MinWriteRate rules instead.
func (c *Conn) SetDeadline(after time.Duration) {
	if after <= 0 {
		c.deadline = 0
		return
	}
	c.deadline = deadlineTick(c.driver.Now(), after)
}

// CloseAfterFlush closes the connection once everything appended so far and
// in the rest of this call has been sent. If input is left unconsumed, the
// engine lingers: it ends its sending side and discards what arrives for a
// moment, so that a reset cannot overtake the answer (RFC 9112, 9.6).
func (c *Conn) CloseAfterFlush() { c.flags |= flagCloseAfter }

// CloseLingering is CloseAfterFlush for when the peer may still be sending
// although all input so far was consumed.
func (c *Conn) CloseLingering() { c.flags |= flagCloseAfter | flagLinger }

// Close closes the connection when the current call returns. Unsent output
// is dropped. The function of SetHangup is called at once.
func (c *Conn) Close() {
	c.flags |= flagCloseNow
	c.fireHangup()
}

// SetHangup arranges for f to be called once, on an engine goroutine or that of Close, which
// must not be held up: when the peer finishes sending or is lost while the connection
// is away from its loop, and at the latest when it is closed. If that has
// happened already, f is called at once. It replaces the function set before; nil
// sets none. The one replaced may still be running.
func (c *Conn) SetHangup(f func()) {
	if f == nil {
		c.hangup.set(nil)
		if t := c.secure(); t != nil && c.state.Load() != atLoop {
			t.awaitLook()
		}
		return
	}
	c.setHangup(&hangup{f, false})
}

// SetHangupAfterInput is SetHangup, but f is not called for a peer that finishes
// sending while something it sent before waits to be read: that comes first.
func (c *Conn) SetHangupAfterInput(f func()) { c.setHangup(&hangup{f, true}) }

func (c *Conn) setHangup(h *hangup) {
	if c.flags&flagPeerDone != 0 {
		c.fireHangup()
	}
	c.hangup.set(h)
	switch t := c.secure(); {
	case t == nil:
	case c.state.Load() != atLoop || c.flags&flagReadable != 0:
		c.lookForEnd(t) // whose event may have come before
	case c.hasEnded():
		c.fireHangup()
	}
}

func (c *Conn) fireHangup() { c.hangup.fire() }

// noteHangup calls the function of SetHangup, because of events that say that the
// peer has finished sending or is lost.
func (c *Conn) noteHangup(events uint32) {
	if events&(unix.EPOLLHUP|unix.EPOLLERR) == 0 && c.hangup.afterInput() {
		if unread, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ); err == nil && unread > 0 && !c.saysGoodbye(unread) {
			return
		}
	}
	c.fireHangup()
}

// A hangup is what is called when a peer hangs up.
type hangup struct {
	f          func()
	afterInput bool
}

// hangupHook holds at most one function to call once.
type hangupHook struct{ h atomic.Pointer[hangup] }

// fired in a hook says that the event has happened.
var fired = new(hangup)

func (h *hangupHook) set(next *hangup) {
	for {
		old := h.h.Load()
		if old == fired {
			if next != nil {
				next.f()
			}
			return
		}
		if h.h.CompareAndSwap(old, next) {
			return
		}
	}
}

func (h *hangupHook) afterInput() bool {
	set := h.h.Load()
	return set != nil && set.afterInput
}

// waits reports whether there is a function to call.
func (h *hangupHook) waits() bool {
	set := h.h.Load()
	return set != nil && set != fired
}

func (h *hangupHook) fire() {
	if set := h.h.Swap(fired); set != nil && set != fired {
		set.f()
	}
}
