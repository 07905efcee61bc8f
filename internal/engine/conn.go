//go:build linux

package engine

import (
	"net"
	"net/netip"
	"time"
)

// A Conn is one accepted connection. Unless a method says otherwise it may
// only be used by the connection's owner: the goroutine in which the engine
// is calling the handler for it, until that call returns.
type Conn struct {
	// Proto is the handler's state for what is unfinished on this connection,
	// such as a body half received. A connection with a nil Proto, no kept input
	// and no pending output is idle: shutting down closes it at once.
	Proto any
}

// RemoteAddr returns the peer's address, the zero AddrPort for unix sockets.
// Safe for concurrent use.
func (c *Conn) RemoteAddr() netip.AddrPort { panic("being written") }

// LocalAddr returns the address the connection was accepted on, the zero
// AddrPort for unix sockets. It costs a system call.
func (c *Conn) LocalAddr() netip.AddrPort { panic("being written") }

// SetDeadline asks for Handler.Timeout when after has passed, at the
// engine's coarse resolution (late by at most some 100 ms); zero
// asks for none. It replaces the deadline set before. While output is
// pending, Config.MinWriteRate rules instead.
func (c *Conn) SetDeadline(after time.Duration) { panic("being written") }

// CloseAfterFlush closes the connection once everything appended so far and
// in the rest of this call has been sent. If input is left unconsumed, the
// engine lingers: it ends its sending side and discards what arrives for a
// moment, so that a reset cannot overtake the answer (RFC 9112, 9.6).
func (c *Conn) CloseAfterFlush() { panic("being written") }

// CloseLingering is CloseAfterFlush for when the peer may still be sending
// although all input so far was consumed.
func (c *Conn) CloseLingering() { panic("being written") }

// Close closes the connection when the current call returns. Unsent output
// is dropped.
func (c *Conn) Close() { panic("being written") }

// SetHangup arranges for f to be called once, on an engine goroutine that
// must not be held up, if the peer hangs up or the connection is closed
// while it is away from its loop. If that has happened already, f is called at
// once. A nil f withdraws the one before; it may still be running.
func (c *Conn) SetHangup(f func()) { panic("being written") }

// Read reads from the connection itself, past what the handler was given as
// in, and blocks for at most timeout (0: for ever). It calls [Driver.Detach] first.
// Errors: io.EOF, os.ErrDeadlineExceeded, net.ErrClosed or the system's.
func (c *Conn) Read(p []byte, timeout time.Duration) (int, error) { panic("being written") }

// Write sends p behind all output pending so far and blocks for at most timeout
// (0: for ever) between signs of progress. It does not look at d.Out: call
// [Driver.Flush] first. It calls [Driver.Detach] first.
func (c *Conn) Write(p []byte, timeout time.Duration) (int, error) { panic("being written") }

// Hijack takes the connection out of the engine and returns it as a
// net.Conn with all deadlines clear. It calls [Driver.Detach] first. What of in
// was not consumed is the caller's to keep; d.Out must be empty.
// Handler.Closed follows, and the rest of the engine forgets the connection.
func (c *Conn) Hijack() (net.Conn, error) { panic("being written") }
