// Package tlsmem runs crypto/tls without a socket. A [Conn] is the server's side of a TLS connection. The caller lends it the
// records that the peer has sent, and takes the records to send from [Conn.Out]. A Conn never blocks, so that an event loop can
// use it.
//
// The package relies on a behaviour that crypto/tls does not promise, see pinned_test.go: a Read that fails with a temporary
// error of the transport may be repeated.
package tlsmem

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// A Conn is a TLS connection in memory. Only one goroutine at a time may use it.
type Conn struct {
	// Out holds the bytes to send to the peer, in order: application data, replies of the protocol,
	// alerts. After reading it, set it to nil or to memory to append to.
	Out []byte

	// More is called, if not nil, when crypto/tls needs a record and none is lent. It lends at
	// least one record, or returns an error, which must not be temporary and ends the connection.
	More func() error

	tls     *tls.Conn
	in      []byte // lent records that are not yet read
	inPlace bool   // lent records are in the input buffer of crypto/tls, see LendInPlace
	socket  net.Conn
	addr    Addresses
}

// Addresses provides the addresses of a connection.
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

// Of returns the Addresses that Server got for the Conn of a [tls.ClientHelloInfo].
func Of(conn net.Conn) Addresses { return conn.(*transport).addr }

// errMore is the error that the transport returns instead of blocking. Because it is temporary,
// crypto/tls keeps its state and may be called again. The error must be exactly this value: a
// wrapping error does not work.
var errMore net.Error = needsMore{}

type needsMore struct{}

func (needsMore) Error() string   { return "tlsmem: no complete record available" }
func (needsMore) Timeout() bool   { return false }
func (needsMore) Temporary() bool { return true }

// NeedsMore reports whether an error of Read means that more records must be lent.
func NeedsMore(err error) bool { return err == errMore }

// Lend lends complete records, see [Whole]. All records that were lent before must have been read. The memory of records must not
// change until they are read.
func (c *Conn) Lend(records []byte) { c.in = records }

// LendInPlace is like Lend, for use after the handshake. If possible, crypto/tls decrypts the
// records in place; otherwise it copies them. It writes to their memory, and uses it until
// [Conn.Holds] returns false.
func (c *Conn) LendInPlace(records []byte) {
	in, known := inputsOf(c.tls)
	if !known || in.raw.Len() > 0 || in.plain.Len() > 0 || len(c.in) > 0 {
		c.Lend(records)
		return
	}
	*in.raw = *bytes.NewBuffer(records[:len(records):len(records)])
	c.inPlace = true
}

// Holds reports whether crypto/tls still needs lent memory: some of its records, or some of their
// plaintext, have not been read.
func (c *Conn) Holds() bool { return c.inPlace || len(c.in) > 0 }

// Lent returns the lent records that crypto/tls has not read yet.
func (c *Conn) Lent() []byte {
	if c.inPlace {
		in, _ := inputsOf(c.tls)
		return in.raw.Bytes()
	}
	return c.in
}

// Move makes crypto/tls continue with records, a copy of the result of [Conn.Lent], and release all
// other lent memory.
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

// Trim releases the input buffer of crypto/tls if it is empty.
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

// Handshake performs the handshake. More must be set. An error is permanent; Out then holds the
// alert for the peer.
func (c *Conn) Handshake(ctx context.Context) error {
	return c.tls.HandshakeContext(ctx)
}

// Read reads plaintext from the peer, from at most one record at a time. The error is io.EOF after
// the peer's close_notify, an error for which [NeedsMore] is true, or a permanent error. With
// io.EOF, n may be greater than 0.
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
		c.in = nil // the records are never read again, so their owner may reuse the memory
	}
	return n, err
}

// Seal encrypts p and appends the records to Out.
func (c *Conn) Seal(p []byte) error {
	_, err := c.tls.Write(p)
	return err
}

// SealEnd appends close_notify to Out. Further calls append nothing.
func (c *Conn) SealEnd() { _ = c.tls.CloseWrite() }

// State returns the state of the connection after the handshake. Safe for concurrent use.
func (c *Conn) State() tls.ConnectionState { return c.tls.ConnectionState() }

// Forget drops the addresses of the connection, which only the handshake needs.
func (c *Conn) Forget() { c.addr = nil }

// Attach sets a transport for the connection, and returns the tls.Conn. Out must have been
// sent on the transport before. From then on only the returned tls.Conn may be used, by any number
// of goroutines. Lent memory is released. rest is the data that the transport has received already;
// the connection keeps it.
func (c *Conn) Attach(socket net.Conn, rest []byte) *tls.Conn {
	c.in, c.inPlace = rest, false
	c.Out, c.More, c.socket = nil, nil, socket
	return c.tls
}

// errDetached is the error of setting a deadline on a connection without a transport.
var errDetached = errors.New("tlsmem: the connection has no transport")

// A transport is a Conn as crypto/tls uses it.
type transport Conn

func (t *transport) Read(p []byte) (int, error) {
	for len(t.in) == 0 {
		if t.socket != nil {
			return t.socket.Read(p)
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

// Write never fails without a transport, since crypto/tls would not write again after an error.
func (t *transport) Write(p []byte) (int, error) {
	if t.socket != nil {
		return t.socket.Write(p)
	}
	t.Out = append(t.Out, p...)
	return len(p), nil
}

func (t *transport) Close() error {
	if t.socket != nil {
		return t.socket.Close()
	}
	return nil
}

func (t *transport) LocalAddr() net.Addr {
	if t.socket != nil {
		return t.socket.LocalAddr()
	}
	if t.addr == nil {
		return new(net.TCPAddr)
	}
	return t.addr.LocalNetAddr()
}

func (t *transport) RemoteAddr() net.Addr {
	if t.socket != nil {
		return t.socket.RemoteAddr()
	}
	if t.addr == nil {
		return new(net.TCPAddr)
	}
	return t.addr.RemoteNetAddr()
}

func (t *transport) SetDeadline(at time.Time) error {
	if t.socket != nil {
		return t.socket.SetDeadline(at)
	}
	return errDetached
}

func (t *transport) SetReadDeadline(at time.Time) error {
	if t.socket != nil {
		return t.socket.SetReadDeadline(at)
	}
	return errDetached
}

func (t *transport) SetWriteDeadline(at time.Time) error {
	if t.socket != nil {
		return t.socket.SetWriteDeadline(at)
	}
	return errDetached
}

// NetConn returns the attached transport, or nil if there is none. It is the connection below a
// [tls.Conn] of this package.
func (t *transport) NetConn() net.Conn { return t.socket }
