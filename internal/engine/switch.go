//go:build linux

package engine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A Protocol serves one connection in place of the engine's Handler after Conn.Switch. Its methods are called like the Handler's
// methods of the same name, with these differences. Data is called only by drivers of loops, so application code in Data must be
// between EnterPart and Leave. Data is also called when the engine begins to drain; in a drain the Protocol must end the connection
// itself. The connection counts as busy. Without the note Parts, it is never closed to free its descriptor.
type Protocol interface {
	State

	Data(d *Driver, c *Conn, in []byte) (consumed int)
	End(d *Driver, c *Conn)
	Timeout(d *Driver, c *Conn, in []byte)

	// Evicted is called when there is no memory for the connection. It may append last output.
	Evicted(d *Driver, c *Conn)

	// Unsent is called each time that output of the protocol has been sent. The socket has not accepted the last n bytes. The
	// protocol may take back some of them, from the end: Unsent returns their number. The engine keeps the other bytes as pending
	// output. Data is called when the socket accepts more.
	Unsent(n int) (takenBack int)

	// Pended is called after a call of Data whose output the peer did not accept at once, with the number of bytes left. It
	// reports whether Data must be called when the peer has accepted all of them.
	Pended(bytes int64) (again bool)

	// Blocked is called when d has lost its loop between EnterPart and Leave. The code there may be running. now is the time on the
	// engine's clock, in ns, and collected is as for Scratch.Detached. Blocked reports whether the code counts against
	// Config.MaxWorkers. It may be called on any goroutine.
	Blocked(d *Driver, now int64, collected bool) (waits bool)

	// Abandoned is called when code between EnterPart and Leave ended in a panic, which is logged, or in runtime.Goexit.
	Abandoned(d *Driver)

	Closed()
}

// Switch passes the connection to p, which gets the input that this call of Data does not consume, and all later events. p
// becomes Conn.Proto. The engine calls p.Data next, even without input.
func (c *Conn) Switch(p Protocol) {
	c.Proto = p
	c.Notes |= switched
	d := c.driver
	d.More()
	if d.detached {
		c.flags |= flagAgain // a loop calls it
	}
}

// SwitchAtOnce is Switch for a call of Data that has consumed nothing: p serves the input of that call. It returns the result
// of p.Data, which the call of Data must return.
func (d *Driver) SwitchAtOnce(c *Conn, p Protocol, in []byte) (consumed int) {
	c.Proto = p
	c.Notes |= switched
	return d.dataSwitched(c, p, in)
}

// protocol returns the protocol to which the connection has switched, nil for none.
func (c *Conn) protocol() Protocol {
	if c.Notes&switched == 0 {
		return nil
	}
	return c.Proto.(Protocol)
}

// dataSwitched passes input to a protocol. A driver without a loop leaves the input to the driver of the connection's loop.
func (d *Driver) dataSwitched(c *Conn, p Protocol, in []byte) (n int) {
	if d.detached {
		d.leftover = leftLater
		return 0
	}
	d.to = p
	n = p.Data(d, c, in)
	d.to = nil
	return n
}

// pendedSwitched informs a protocol of pending output, and arranges a call of Data if it requests one.
func (c *Conn) pendedSwitched(p Protocol) {
	if c.out != nil && p.Pended(c.out.bytes) {
		c.flags |= flagAgain
	}
}

// acceptSwitched continues to send Out until the socket accepts no more. sent and errno are the result of the first call of send.
// Then the protocol may take back output. If done is false, the caller handles the remaining Out as for other connections.
func (d *Driver) acceptSwitched(c *Conn, p Protocol, sent int, errno syscall.Errno) (_ int, _ syscall.Errno, done bool) {
	for errno == 0 && sent < len(d.Out) {
		// epoll reports that the socket accepts more only if a call has found it full.
		var n int
		n, errno = send(c.fd, d.Out[sent:])
		sent += n
	}
	unsent := len(d.Out) - sent
	back := p.Unsent(unsent)
	if back == 0 || errno != unix.EAGAIN {
		return sent, errno, false
	}
	d.Out = d.Out[:len(d.Out)-back]
	if back < unsent {
		return sent, errno, false
	}
	d.dropOutput()
	c.out = d.newOutQueue(c) // empty: the protocol waits for the peer
	c.SetWorking(false)
	c.wantOut()
	return 0, 0, true
}

// A Loop is the event loop of a connection, which never changes.
type Loop interface {
	// Call makes the loop call f soon. f must be quick and must not block. Call returns false if the loop has ended. Safe for
	// concurrent use.
	Call(f func()) bool
}

// Loop returns the loop of the connection.
func (c *Conn) Loop() Loop { return c.loop }

// Call implements Loop.
func (l *loop) Call(f func()) bool { return l.post(message{kind: msgCall, f: f}) }

// WakeHere is Wake for a function that Loop.Call has passed to the connection's loop.
func (c *Conn) WakeHere() { c.loop.woken(c) }
