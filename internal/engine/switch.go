//go:build linux

package engine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A Protocol serves one connection in place of the engine's Handler after Conn.Switch. Its calls are those of the Handler's
// methods of the same name, with these differences. Data is called only by drivers of loops, so that application code in it
// must be between EnterPart and Leave. It is called again when the peer has read pending output, and when the engine begins
// to drain; the Protocol then ends the connection itself. The connection counts as busy. It is never closed for its
// descriptor.
type Protocol interface {
	State

	Data(d *Driver, c *Conn, in []byte) (consumed int)
	End(d *Driver, c *Conn)
	Timeout(d *Driver, c *Conn)

	// Evicted is called when there is no memory for the connection. It may append last output.
	Evicted(d *Driver, c *Conn)

	// Unsent is called after each call of send for output of the protocol: the peer has not accepted the last n bytes. The result
	// is how many of them, from the end, the protocol takes back. Data is called when the peer accepts more. The rest is pending.
	Unsent(n int) (takenBack int)

	// Pended is called after a call of Data whose output the peer did not accept at once, with the number of bytes left.
	Pended(bytes int64)

	// Blocked is called, on any goroutine, while code between EnterPart and Leave runs that has lost its loop.
	Blocked(now int64)

	// Abandoned is called when code between EnterPart and Leave ended in a panic, which is logged, or in runtime.Goexit.
	Abandoned(d *Driver)

	Closed()
}

// Switch passes the connection to p: for the input that this call of Data leaves, and all later events. p becomes Conn.Proto.
// Data is called next, even without input.
func (c *Conn) Switch(p Protocol) {
	c.Proto = p
	c.Notes |= switched
	d := c.driver
	d.More()
	if d.detached {
		c.flags |= flagAgain // a loop calls it
	}
}

// protocol returns the protocol to which the connection has switched, nil for none.
func (c *Conn) protocol() Protocol {
	if c.Notes&switched == 0 {
		return nil
	}
	return c.Proto.(Protocol)
}

// dataSwitched passes input to a protocol. A driver without a loop leaves it to one with a loop.
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

// pendedSwitched informs a protocol of pending output, and arranges a call of Data when the peer has read it.
func (c *Conn) pendedSwitched(p Protocol) {
	if c.out != nil {
		c.flags |= flagAgain
		p.Pended(c.out.bytes)
	}
}

// acceptSwitched continues to send Out until the peer accepts no more. sent and errno are the result of the first try. Then the
// protocol takes back output. If done is false, the remaining Out is handled as that of other connections.
func (d *Driver) acceptSwitched(c *Conn, p Protocol, sent int, errno syscall.Errno) (_ int, _ syscall.Errno, done bool) {
	for errno == 0 && sent < len(d.Out) {
		// Only a socket that has been full makes an edge when it accepts more.
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
	// Call has the loop call f soon. f must be quick and must not block. Any goroutine may call it. It reports false if the loop
	// has ended.
	Call(f func()) bool
}

// Loop returns the loop of the connection.
func (c *Conn) Loop() Loop { return c.loop }

// Call implements Loop.
func (l *loop) Call(f func()) bool { return l.post(message{kind: msgCall, f: f}) }

// WakeHere is Wake for a function that the connection's loop calls.
func (c *Conn) WakeHere() { c.loop.woken(c) }
