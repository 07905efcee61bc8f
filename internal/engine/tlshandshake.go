//go:build linux

package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// A handshake is a running handshake, on a goroutine of its own.
type handshake struct {
	e *Engine
	c *Conn
	t *tlsState
	d *Driver

	source *handshakeSource
	kind   handshakeKind
	until  int64         // its deadline, 0 for none
	begin  chan struct{} // gets a value when the handshake gets a processor; capacity 1
	since  int64         // when the handshake began to compute or to wait for its client; under handshakes.mu
	given  bool          // giveUp has ended the handshake to make room for others; under handshakes.mu
	fault  error         // the engine's reason to end the handshake; nil if crypto/tls ended it
}

// errGivenUp ends a handshake that waits for its client while other handshakes need the room.
var errGivenUp = errors.New("the client was slow, and other clients waited")

// perform is the goroutine of a handshake.
func (h *handshake) perform() {
	c, e := h.c, h.e
	h.t = c.secure()
	h.d = &Driver{engine: e, detached: true, conn: c, parking: new(parking)}
	c.driver = h.d
	h.t.phase = tlsShaking
	h.until = c.handshakeUntil()
	account := c.Account()
	account.SetWorking(true)
	account.Force(memory.Input, handshakeMemory)
	account.BeginResponse(handshakeLeft) // little is still to arrive, so request bodies are evicted before it
	account.Progress(int64(len(h.t.records())), handshakeLeft)
	var other func()
	defer func() {
		if cause := recover(); cause != nil {
			e.cfg.Logger.Error("engine: panic in a TLS handshake", "panic", cause, "stack", string(debug.Stack()))
		}
		if h.t.phase == tlsShaking { // the goroutine of the handshake has panicked or called Goexit
			c.flags |= flagCloseNow
		}
		account.EndResponse()
		account.Release(memory.Input, handshakeMemory)
		e.handshakes.end(h)
		h.d.end(c)
		if other != nil {
			other()
		}
	}()
	err := h.run()
	if err != nil {
		h.fail(err)
		return
	}
	other = h.open()
}

// handshakeUntil returns the deadline of the handshake of c, 0 for none.
func (c *Conn) handshakeUntil() int64 {
	e := c.loop.e
	if c.deadline == 0 || e.draining.Load() { // in a drain c.deadline is for connections without requests
		return e.timeoutAt(c.openTimeout(e))
	}
	return startOf(c.deadline)
}

// run performs the handshake.
func (h *handshake) run() error {
	conn := tlsmem.Server(h.t.on.Config, h)
	h.t.conn = conn
	conn.More = h.more
	h.lendRecords()
	err := conn.Handshake(context.Background())
	conn.More = nil
	conn.Forget()
	if err != nil {
		return err
	}
	out := conn.Out
	conn.Out = nil
	return h.flush(out)
}

// lendRecords lends the complete received records to crypto/tls. It reports whether there were any.
func (h *handshake) lendRecords() bool {
	t := h.t
	whole := tlsmem.InHandshake(t.records())
	if whole == 0 {
		return false
	}
	t.conn.Lend(t.records()[:whole])
	t.lent += whole
	return true
}

// more is called when crypto/tls needs input. It sends the output of crypto/tls, and waits for the client's reply.
func (h *handshake) more() error {
	out := h.t.conn.Out
	h.t.conn.Out = out[:0]
	if err := h.flush(out); err != nil {
		return err
	}
	for !h.lendRecords() {
		rest := h.t.records()
		n, errno := h.t.fill(h.c, max(handshakeFillSize, len(rest)+tlsmem.Missing(rest)))
		switch {
		case n > 0:
			h.c.Progress(int64(n), handshakeLeft)
		case errno == 0:
			return io.EOF
		case errno != unix.EAGAIN:
			return fmt.Errorf("read: %w", errno)
		default:
			h.t.shrink(h.c)
			if err := h.wait(toRead); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait waits for the client. Meanwhile the handshake has no processor.
func (h *handshake) wait(wants int) error {
	c := h.c
	if c.ended() {
		h.fault = ErrNoRoom
		return ErrNoRoom
	}
	c.SetWorking(false)
	h.e.handshakes.pause(h)
	err := c.block(wants, h.until)
	goOn := h.e.handshakes.goOn(h)
	c.SetWorking(true)
	switch {
	case !goOn:
		h.fault = errGivenUp
		return errGivenUp
	case err == nil && h.until != 0 && h.e.now() >= h.until:
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		h.fault = err
	}
	return err
}

// flush sends b, and waits while the socket is full, which happens only with long certificate chains.
func (h *handshake) flush(b []byte) error {
	for len(b) > 0 {
		n, errno := send(h.c.fd, b)
		b = b[n:]
		switch {
		case errno == 0:
		case errno != unix.EAGAIN:
			return fmt.Errorf("write: %w", errno)
		default:
			h.c.wantOut()
			if err := h.wait(toWrite); err != nil {
				return err
			}
		}
	}
	return nil
}

// fail ends the connection because of err. If crypto/tls has made an alert, fail sends it first.
func (h *handshake) fail(err error) {
	c, t := h.c, h.t
	reason, what := admission.TLSError, "TLS handshakes have failed"
	switch {
	case h.fault == ErrNoRoom: // already counted by Conn.ended
		reason, what = admission.LargestHolder, ""
	case h.fault != nil:
		reason, what = admission.SlowHandshake, "clients were too slow with their TLS handshakes"
		err = nil
	}
	if what != "" {
		h.e.noteTLS(reason, c, what, err)
	}
	alert := t.conn.Out
	t.conn.Out = nil
	t.drop(h.e)
	t.phase = tlsReleased
	if len(alert) == 0 || h.fault != nil {
		c.flags |= flagCloseNow
		return
	}
	h.d.sendRaw(c, alert)
	c.flags |= flagCloseAfter | flagLinger
}

// open is called after a successful handshake. If TLS.Other takes connections of the negotiated protocol, open returns the
// function that passes the connection on; it must be called after the engine has released the connection. Otherwise the engine
// serves the connection.
func (h *handshake) open() (other func()) {
	c, t := h.c, h.t
	t.phase = tlsOpen
	state := t.conn.State()
	if t.proto = state.NegotiatedProtocol; state.Version <= tls.VersionTLS12 {
		t.suite = state.CipherSuite
	}
	var serve func(*Agreed)
	if t.on.Other != nil {
		serve = t.on.Other(t.proto)
	}
	if serve != nil {
		from := c.peer.addr()
		socket, secure, err := c.takeSecure(t)
		if err != nil {
			if n, due := h.e.failures.Note(); due {
				h.e.cfg.Logger.Error("engine: cannot pass a connection on", "err", err, "count", n)
			}
			c.flags |= flagCloseNow
			return nil
		}
		t.passed = true
		agreed := &Agreed{Socket: socket, Secure: secure, Remote: c.RemoteAddr(), Closed: func() { h.e.cfg.Addresses.Release(h.e.source(from)); h.e.forget() }}
		return func() { serve(agreed) }
	}
	t.count(h.e)
	t.left = true // the client's first request may have arrived with its last message
	c.deadline = 0
	if idle := h.e.cfg.OpenTimeout; idle > 0 {
		c.deadline = deadlineTick(h.e.now(), idle)
	}
	return nil
}

// takeSecure removes the socket from the engine. It returns the socket, and a function that makes a *tls.Conn. The *tls.Conn
// reads the input that the engine has received and crypto/tls has not, before the input of the socket.
func (c *Conn) takeSecure(t *tlsState) (socket net.Conn, secure func(net.Conn) *tls.Conn, err error) {
	socket, err = c.takeSocket()
	if err != nil {
		return nil, nil, err
	}
	conn, rest := t.conn, append(append([]byte(nil), t.conn.Lent()...), t.records()...)
	conn.Move(nil)
	t.drop(c.loop.e)
	t.phase = tlsReleased
	return socket, func(socket net.Conn) *tls.Conn { return conn.Attach(socket, rest) }, nil
}

// LocalNetAddr and RemoteNetAddr return the addresses that crypto/tls passes to code that chooses certificates.
func (h *handshake) LocalNetAddr() net.Addr  { return netAddr(h.c, true) }
func (h *handshake) RemoteNetAddr() net.Addr { return netAddr(h.c, false) }
