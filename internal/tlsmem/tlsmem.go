// Package tlsmem is crypto/tls without a socket: a [Conn] is the server's side of a TLS
// connection that is lent the records its peer has sent and gathers those that its peer is to
// be sent. Nothing in it waits, so that an event loop can serve it.
//
// It rests on what crypto/tls does and does not promise, see pinned_test.go: a Read that fails
// with a temporary error of the transport may be repeated.
package tlsmem

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// A Conn is used by one goroutine at a time.
type Conn struct {
	// Out is what is to be sent to the peer, in order: answers, replies of the protocol,
	// alerts. Whoever takes it sets it to nil, or to memory that is to be appended to.
	Out []byte

	// More is called, if it is not nil, when crypto/tls needs a record and none is lent: it
	// lends at least one, or returns why there is none. The error must not be temporary, and
	// ends the connection.
	More func() error

	tls     *tls.Conn
	in      []byte // lent, not taken yet
	inPlace bool   // ... or lies in the memory that crypto/tls reads from, see LendInPlace
	wire    net.Conn
	addr    Addresses
	near    near // since the handshake
}

// Addresses says where a connection comes from.
type Addresses interface {
	LocalNetAddr() net.Addr
	RemoteNetAddr() net.Addr
}

// Server returns a connection whose handshake has not begun.
func Server(config *tls.Config, addr Addresses) *Conn {
	c := &Conn{addr: addr}
	c.tls = tls.Server((*transport)(c), config)
	return c
}

// Of returns what Server was given for the connection that a [tls.ClientHelloInfo] has.
func Of(conn net.Conn) Addresses { return conn.(*transport).addr }

// errMore is what the transport says instead of waiting. Crypto/tls keeps what it has, and may
// be asked again, because it is temporary; it must be this value, not one that wraps it.
var errMore net.Error = needsMore{}

type needsMore struct{}

func (needsMore) Error() string   { return "tlsmem: no whole record is here" }
func (needsMore) Timeout() bool   { return false }
func (needsMore) Temporary() bool { return true }

// NeedsMore reports whether an error of Read says that records must be lent.
func NeedsMore(err error) bool { return err == errMore }

// Lend lends whole records, see [Whole], beside those lent before, which must have been taken.
// They must not change until they are.
func (c *Conn) Lend(records []byte) { c.in = records }

// LendInPlace is Lend for after the handshake: crypto/tls opens the records where they lie, if it can be had to, and
// copies them else. It writes to their memory, and has it as long as [Conn.Holds] says so.
func (c *Conn) LendInPlace(records []byte) {
	in, known := inputsOf(c.tls)
	if !known || in.raw.Len() > 0 || in.plain.Len() > 0 || len(c.in) > 0 {
		c.Lend(records)
		return
	}
	*in.raw = *bytes.NewBuffer(records[:len(records):len(records)])
	c.inPlace = true
}

// Holds reports whether crypto/tls needs the memory that it was lent: not all records in it have been taken, or not all
// that they carried was read.
func (c *Conn) Holds() bool { return c.inPlace || len(c.in) > 0 }

// Lent returns what crypto/tls has not taken yet.
func (c *Conn) Lent() []byte {
	if c.inPlace {
		in, _ := inputsOf(c.tls)
		return in.raw.Bytes()
	}
	return c.in
}

// Move has crypto/tls go on with a copy of what [Conn.Lent] returns, and need nothing else that it was lent.
func (c *Conn) Move(records []byte) {
	if !c.inPlace {
		c.in = records
		return
	}
	in, _ := inputsOf(c.tls)
	*in.raw = *bytes.NewBuffer(records[:len(records):len(records)])
	rest := make([]byte, in.plain.Len())
	_, _ = in.plain.Read(rest)
	in.plain.Reset(rest)
}

// Trim gives back the memory that crypto/tls keeps for input, if there is none.
func (c *Conn) Trim() {
	in, known := inputsOf(c.tls)
	if known && in.raw.Len() == 0 && in.plain.Len() == 0 {
		c.dropInput(in)
	}
}

func (c *Conn) dropInput(in inputs) {
	*in.raw = bytes.Buffer{}
	in.plain.Reset(nil)
	if in.hand.Len() == 0 && in.hand.Cap() > 0 {
		*in.hand = bytes.Buffer{}
	}
	c.inPlace = false
}

// Handshake shakes hands. More must be set. An error is for good; what Out then holds says
// to the peer what is wrong.
func (c *Conn) Handshake(ctx context.Context) error {
	err := c.tls.HandshakeContext(ctx)
	if err == nil {
		c.near = nearOf(c.tls)
	}
	return err
}

// Read reads what the peer has sent, at most one record at a time. The error is io.EOF after
// the peer's close_notify, one that [NeedsMore], or for good; with io.EOF n may be more than 0.
func (c *Conn) Read(p []byte) (n int, err error) {
	n, err = c.tls.Read(p)
	over := err != nil && !NeedsMore(err)
	if c.inPlace {
		in, _ := inputsOf(c.tls)
		if in.raw.Len() == 0 && in.plain.Len() == 0 || over {
			c.dropInput(in)
		}
	}
	if over {
		c.in = nil // which nobody will take: its memory is the lender's again
	}
	return n, err
}

// Seal appends p as records to Out.
func (c *Conn) Seal(p []byte) error {
	_, err := c.tls.Write(p)
	return err
}

// SealEnd appends close_notify to Out, once.
func (c *Conn) SealEnd() { _ = c.tls.CloseWrite() }

// State returns what was agreed in the handshake. Safe for concurrent use.
func (c *Conn) State() tls.ConnectionState { return c.tls.ConnectionState() }

// Forget has the connection forget where it comes from, which only the handshake asks.
func (c *Conn) Forget() { c.addr = nil }

// Attach gives the connection a transport of its own, to which Out has been sent: from now on
// the connection that it returns is used alone, by any number of goroutines. What is lent is no
// more; rest is what the transport has received already, and kept.
func (c *Conn) Attach(wire net.Conn, rest []byte) *tls.Conn {
	c.in, c.inPlace = rest, false
	c.Out, c.More, c.wire = nil, nil, wire
	return c.tls
}

// errDetached is what becomes of deadlines of a connection without a transport.
var errDetached = errors.New("tlsmem: the connection has no transport of its own")

// A transport is a Conn as crypto/tls sees it.
type transport Conn

func (t *transport) Read(p []byte) (int, error) {
	for len(t.in) == 0 {
		if t.wire != nil {
			return t.wire.Read(p)
		}
		if t.More == nil {
			return 0, errMore
		}
		if err := t.More(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.in)
	t.in = t.in[n:]
	return n, nil
}

// Write never fails without a transport: crypto/tls would not write again.
func (t *transport) Write(p []byte) (int, error) {
	if t.wire != nil {
		return t.wire.Write(p)
	}
	t.Out = append(t.Out, p...)
	return len(p), nil
}

func (t *transport) Close() error {
	if t.wire != nil {
		return t.wire.Close()
	}
	return nil
}

func (t *transport) LocalAddr() net.Addr {
	if t.wire != nil {
		return t.wire.LocalAddr()
	}
	if t.addr == nil {
		return new(net.TCPAddr)
	}
	return t.addr.LocalNetAddr()
}

func (t *transport) RemoteAddr() net.Addr {
	if t.wire != nil {
		return t.wire.RemoteAddr()
	}
	if t.addr == nil {
		return new(net.TCPAddr)
	}
	return t.addr.RemoteNetAddr()
}

func (t *transport) SetDeadline(at time.Time) error {
	if t.wire != nil {
		return t.wire.SetDeadline(at)
	}
	return errDetached
}

func (t *transport) SetReadDeadline(at time.Time) error {
	if t.wire != nil {
		return t.wire.SetReadDeadline(at)
	}
	return errDetached
}

func (t *transport) SetWriteDeadline(at time.Time) error {
	if t.wire != nil {
		return t.wire.SetWriteDeadline(at)
	}
	return errDetached
}

// NetConn returns the transport of its own, nil if it has none: what lies below a [tls.Conn]
// of this package.
func (t *transport) NetConn() net.Conn { return t.wire }
