//go:build linux

package engine

import (
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A State is the handler's state of a connection between calls.
type State interface {
	// AccountSet returns the set of the accounts of the connection's parts, or nil. The account of the connection and the
	// accounts of its parts share a bound.
	AccountSet() *memory.AccountSet
}

// A Conn is one accepted connection. Unless the comment of a method says otherwise, only the goroutine on which the engine calls
// the handler for the connection may use the Conn, until that call returns.
type Conn struct {
	// Proto is the handler's state for unfinished requests of this connection, such as a partial body, or the Protocol that has
	// replaced the handler (switch.go). A connection with a nil Proto, no kept input and no pending output is idle: shutdown closes it at once.
	Proto State

	loop   *loop
	driver *Driver                        // during a call of the handler
	in     *buffer                        // input kept for later, or nil
	out    *outQueue                      // output that the socket did not accept, or nil
	acct   atomic.Pointer[memory.Account] // the account of the connection, or nil, see holder.go; the monitor reads it, too
	hangup hangupHook                     // any goroutine

	peer peerAddr
	port uint16 // of the peer

	// Count belongs to the handler: the number of requests served on this connection. For a connection with the note Parts it
	// belongs to the engine: about the number of requests that begin in one visit.
	Count uint16

	fd    int32
	slot  int32         // index in loop.conns; belongs to the loop
	gen   uint32        // distinguishes this connection's events from those of earlier connections in the slot; see genSecure
	state atomic.Uint32 // see state.go; any goroutine

	deadline   uint32 // tick at which to call Timeout, 0 for none
	filed      uint32 // its tick in the timer wheel, or 0; belongs to the loop
	mark       uint32 // while away: the value of filed when it left; at its loop: the stamp of its latest visit, 0 for a new connection
	prev, next int32  // neighbours in the wheel's slot; belong to the loop

	flags  connFlags
	queued bool // in loop.queue or loop.later; belongs to the loop

	// Notes belong to the handler; the engine reads only Parts, Begun and Paused.
	Notes Note
}

// A Note is a fact that a handler knows about a connection.
type Note uint8

const (
	// Parts: the connection has a Protocol, and carries many requests at once (part.go).
	Parts Note = 1 << iota

	// Begun: the protocol is known, because a request has arrived. Before that the connection is new, and has more time when
	// the engine drains.
	Begun

	// Paused: the connection is not read, not even while it lingers, until the handler clears the note and calls Wake. Input from
	// the peer stays in the system, which soon accepts no more. The engine still notices the loss of the peer.
	Paused

	// switched: the connection has a Protocol, see Conn.Switch. It belongs to the engine.
	switched
)

type connFlags uint16

const (
	flagReadable   connFlags = 1 << iota // an event arrived, and the input was not read to its end
	flagPeerDone                         // epoll reported that the peer has finished sending
	flagEOF                              // the end was read and Handler.EOF called
	flagAgain                            // kept input waits for Data, not for more input
	flagHandOff                          // a worker serves the kept input
	flagCloseAfter                       // close when out is empty
	flagLinger                           // linger before the close
	flagLingering                        // our side is shut, input is discarded
	flagCloseNow                         // close without sending the rest
	flagWantOut                          // EPOLLOUT is in the interest set
	flagLook                             // the owner used the socket without the loop: giveBack must call lookAgain
	flagUrgent                           // it precedes other connections in the line for a worker
	flagUnbounded                        // so far only the kernel bounds its unsent output, see unread.go
)

// hungUp has the events that report that the peer will send no more.
const hungUp = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR

// interest returns the event mask the connection is registered with.
func (c *Conn) interest() uint32 {
	var mask uint32 = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	if c.flags&flagWantOut != 0 {
		mask |= unix.EPOLLOUT
	}
	return mask
}

// idle reports whether the connection has no unfinished work.
func (c *Conn) idle() bool {
	if c.Proto != nil || c.in != nil || c.out != nil {
		return false
	}
	t := c.secure()
	return t == nil || t.quiet()
}

// rests reports whether input from the peer must not be read now.
func (c *Conn) rests() bool { return c.Notes&Paused != 0 && c.flags&flagAgain == 0 }

// over reports whether the connection must be closed now.
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

// Remote4 returns the peer's address as a number if it is an IPv4 address, as most are.
func (c *Conn) Remote4() (ip uint32, ok bool) { return c.peer.addr4() }

// LocalAddr returns the address at which the connection was accepted, the zero AddrPort for unix sockets. It costs a system
// call.
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

// SetDeadline requests a call of Handler.Timeout after the given time. The call may be late by about 140 ms. The new deadline
// replaces the earlier one; zero means no deadline. While output is pending, Config.Limits.MinWriteRate applies instead.
func (c *Conn) SetDeadline(after time.Duration) {
	if after <= 0 {
		c.deadline = 0
		return
	}
	c.deadline = deadlineTick(c.driver.Now(), after)
}

// CloseAfterFlush closes the connection when all output has been sent, including the output of the rest of this call. If input is
// left unconsumed, the engine lingers: it shuts down its sending side and discards input for a moment, so that a reset cannot
// overtake the answer (RFC 9112, section 9.6).
func (c *Conn) CloseAfterFlush() { c.flags |= flagCloseAfter }

// CloseLingering is CloseAfterFlush for a peer that may still send although all received input was consumed.
func (c *Conn) CloseLingering() { c.flags |= flagCloseAfter | flagLinger }

// Close closes the connection when the current call returns. Unsent output
// is dropped. The function of SetHangup is called at once.
func (c *Conn) Close() {
	c.flags |= flagCloseNow
	c.fireHangup()
}

// SetHangup arranges for one call of f. The call runs on a goroutine of the engine or on that of Close, so f must not block. f is
// called when the peer finishes sending or is lost while the connection is away from its loop, when the connection is evicted,
// and at the latest when the connection is closed. If that has already happened, f is called at once. f replaces the earlier
// function, which may still be running. A nil f removes the earlier function.
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

// SetHangupAfterInput is SetHangup, except that f is not called for a peer that finishes sending while earlier input waits to
// be read: the input is read first.
func (c *Conn) SetHangupAfterInput(f func()) { c.setHangup(&hangup{f, true}) }

func (c *Conn) setHangup(h *hangup) {
	if c.flags&flagPeerDone != 0 {
		c.fireHangup()
	}
	c.hangup.set(h)
	if a := c.acct.Load(); a != nil && a.Evicted() {
		c.hangup.interrupt(h)
	}
	switch t := c.secure(); {
	case t == nil:
	case c.state.Load() != atLoop || c.flags&flagReadable != 0:
		c.lookForEnd(t) // the event of the end may have arrived already
	case c.hasEnded():
		c.fireHangup()
	}
}

func (c *Conn) fireHangup() { c.hangup.fire() }

// noteHangup calls the function of SetHangup, because the peer has finished sending or is lost.
func (c *Conn) noteHangup(events uint32) {
	if events&(unix.EPOLLHUP|unix.EPOLLERR) == 0 && c.hangup.afterInput() {
		if unread, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ); err == nil && unread > 0 && !c.onlyAlert(unread) {
			return
		}
	}
	c.fireHangup()
}

// A hangup is the function to call when a peer hangs up.
type hangup struct {
	f          func()
	afterInput bool
}

// hangupHook holds at most one function, to be called once.
type hangupHook struct{ h atomic.Pointer[hangup] }

// fired in a hook means that the event has happened.
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

// interrupt removes set from the hook and calls its function, if the hook still has it. The peer has not hung up: a function that
// is set later waits for that.
func (h *hangupHook) interrupt(set *hangup) {
	if set != nil && set != fired && h.h.CompareAndSwap(set, nil) {
		set.f()
	}
}

func (h *hangupHook) fire() {
	if set := h.h.Swap(fired); set != nil && set != fired {
		set.f()
	}
}
