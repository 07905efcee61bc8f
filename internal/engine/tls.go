//go:build linux

package engine

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// TLS lies between a socket and the handler, which sees what the records carry. Crypto/tls does the work,
// without a socket of its own (internal/tlsmem): the engine lends it the records that have come,
// and sends what it has made. All that the engine counts, bounds and judges by rate is ciphertext.
//
//	greeting ──(a ClientHello is here)──▶ hello ──▶ shaking ──▶ open ──▶ released
//	   loop                               in line    goroutine    as any    hijacked, or handed over
//
// A tls.Conn of a connection that is the loop's holds no input: no plaintext and no part of a record.
// The beginning of a record is kept by the connection, in a buffer that the budget counts.

// TLS says how the connections of a listener are secured.
type TLS struct {
	// Config is as for crypto/tls. It must not be changed any more.
	Config *tls.Config

	// Prompt says that Config.GetCertificate never blocks: a handshake keeps its processor while it is called.
	Prompt bool

	// Timeout is for how long a client may take from the beginning of its connection to the
	// end of the handshake. Default: that of [Config.OpenTimeout].
	Timeout time.Duration

	// NotTLS is the answer to a client that begins in clear text. Default: none.
	NotTLS []byte

	// Other is called after each handshake with the protocol that was agreed (ALPN, "" for none). It returns nil if
	// the handler serves that, else the function that takes the connection over, on a goroutine of its own.
	// Default: the handler serves all.
	Other func(proto string) func(*Agreed)
}

// An Agreed is a connection that is passed on to another server.
type Agreed struct {
	// Wire is the socket, with all deadlines clear.
	Wire net.Conn
	// Secure returns the connection with Wire, or what was made around it, below it. It is to
	// be called once.
	Secure func(wire net.Conn) *tls.Conn
	// Remote is the client's address. It differs from that of Wire behind a proxy.
	Remote netip.AddrPort
	// Closed is to be called once, when the connection is closed: until then it counts among those
	// that are open.
	Closed func()
}

// A secureConn is a Conn of a listener with TLS. A connection in clear text is a Conn alone, and pays nothing for TLS.
type secureConn struct {
	Conn
	tls tlsState
}

// tlsState is the part of a connection that speaks TLS. It is its owner's, as the Conn is.
type tlsState struct {
	on    *TLS
	conn  *tlsmem.Conn // since the handshake
	buf   *buffer      // records that have come, nil for none
	lent  int          // the first bytes of buf, which conn was lent
	idle  int          // bytes of records since one carried plaintext
	phase tlsPhase
	proto string // that was agreed, "" for none
	suite uint16 // likewise by TLS 1.2, 0 by later versions
	left  bool   // conn may hold plaintext that a Read had no room for, or an error of its own
	ended bool   // the peer has said close_notify
	bye   bool   // and so have we

	passed bool // it was taken over, see TLS.Other
	held   bool // it counts in Engine.secured

	state atomic.Pointer[tls.ConnectionState] // once somebody has asked for it

	mu    sync.Mutex  // held by the user of this while the connection is away, see tlsend.go
	used  bool        // the owner has mu
	noted atomic.Bool // the loop wanted mu, which was held: its holder looks for the end
	early []byte      // plaintext that came where the end was looked for

	unseen bool // something may have come that nobody has looked at for the end
}

type tlsPhase uint8

const (
	tlsGreeting tlsPhase = iota
	tlsHello
	tlsShaking
	tlsOpen
	tlsReleased // nothing is sealed any more
)

// mostIdleRecords bounds what a peer may send without plaintext, in bytes: crypto/tls keeps the
// beginning of a message of the handshake, which after it are a few bytes long.
const mostIdleRecords = 64 << 10

// newConn returns a connection of a listener.
func newConn(ln *listener, fd int32) *Conn {
	if ln.tls == nil {
		return &Conn{fd: fd, slot: -1}
	}
	if ln.multipath {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // it was not inherited
	}
	s := &secureConn{Conn: Conn{fd: fd, slot: -1, gen: genSecure}, tls: tlsState{on: ln.tls}}
	return &s.Conn
}

// secureMemory is what an open connection with TLS takes, in bytes, that in crypto/tls included. It is not charged to
// the budget: every client has as much, so none could be refused for it.
const secureMemory = 6 << 10

// hold counts a connection that has shaken hands, and closes idle ones if there are too many.
func (t *tlsState) hold(e *Engine) {
	t.held = true
	e.secured.Add(1)
	if e.tooSecure() && e.idlePosted.CompareAndSwap(false, true) {
		e.broadcast(message{kind: msgDropIdle})
	}
}

// letGo says that the connection is not the engine's any more.
func (t *tlsState) letGo(e *Engine) {
	if t.held {
		t.held = false
		e.secured.Add(-1)
	}
}

// tooSecure reports whether connections with TLS take more than they may.
func (e *Engine) tooSecure() bool {
	return e.cfg.SecureMemory > 0 && e.secured.Load()*secureMemory > e.cfg.SecureMemory
}

// A connection's generation is even without TLS and odd with it; it does not change once the
// connection is a loop's.
const (
	genSecure = 1
	genStep   = 2
)

// TLS returns what was agreed in the handshake of the connection, always the same; nil if it is
// without TLS. Safe for concurrent use once the handler has been called for it.
func (c *Conn) TLS() *tls.ConnectionState {
	t := c.secure()
	if t == nil || t.conn == nil {
		return nil
	}
	if t.state.Load() == nil {
		state := t.conn.State()
		t.state.CompareAndSwap(nil, &state)
	}
	return t.state.Load()
}

// Protocol returns what protocol was agreed in the handshake (ALPN), "" for none.
func (c *Conn) Protocol() string {
	if t := c.secure(); t != nil {
		return t.proto
	}
	return ""
}

// Suite returns the cipher suite that was agreed by TLS 1.2 or before. It is 0 for later versions, all of whose suites are
// good enough for HTTP/2.
func (c *Conn) Suite() uint16 {
	if t := c.secure(); t != nil {
		return t.suite
	}
	return 0
}

// Secure reports whether the connection is with TLS. Safe for concurrent use.
func (c *Conn) Secure() bool { return c.secure() != nil }

// openTimeout returns what time a new connection has.
func (c *Conn) openTimeout(e *Engine) time.Duration {
	if c.awaitsHeader() {
		return e.cfg.ProxyHeader
	}
	if t := c.secure(); t != nil && t.on.Timeout > 0 {
		return t.on.Timeout
	}
	return e.cfg.OpenTimeout
}

// greeting reports whether a connection with TLS has not come to the handshake.
func (c *Conn) greeting() bool {
	t := c.secure()
	return t != nil && t.phase == tlsGreeting
}

// hasEnded reports whether the peer has said close_notify, which makes no event.
func (c *Conn) hasEnded() bool {
	t := c.secure()
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// saysGoodbye reports whether the unread bytes of a peer that has finished sending are just a close_notify, judging by
// their number. Safe for concurrent use.
func (c *Conn) saysGoodbye(unread int) bool {
	if c.secure() == nil {
		return false
	}
	var header [5]byte
	if n, _, err := unix.Recvfrom(int(c.fd), header[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); err != nil || n < len(header) {
		return false
	}
	length := int(header[3])<<8 | int(header[4])
	const alert, data = 21, 23
	return unread == len(header)+length && (header[0] == alert || header[0] == data && length == sealedAlert13)
}

// quiet reports whether nothing of TLS is unfinished.
func (t *tlsState) quiet() bool {
	return t.buf == nil && (t.phase == tlsGreeting || t.phase == tlsOpen || t.phase == tlsReleased)
}

// greet reads what a client sends first, until its ClientHello is here. The driver runs a loop.
func (d *Driver) greet(c *Conn, t *tlsState) {
	raw := d.loop.readBuf()
	have := copy(raw, t.records())
	n, errno := recv(c.fd, raw[have:])
	if !c.tookIn(n, errno, have+n < len(raw)) {
		return
	}
	have += n
	greeting := tlsmem.Greet(raw[:have])
	if greeting == tlsmem.NotTLS {
		d.engine.noteTLS(admission.ClearText, c, "clients have sent clear text where TLS is spoken", nil)
		d.sendRaw(c, t.on.NotTLS)
		c.flags |= flagCloseAfter | flagLinger
		return
	}
	t.keepRecords(c, raw[:have])
	if greeting == tlsmem.Complete || have == len(raw) {
		t.phase = tlsHello
	}
}

// tookIn notes what a read from the socket has brought, and reports whether that was bytes.
func (c *Conn) tookIn(n int, errno syscall.Errno, short bool) bool {
	switch {
	case n > 0:
		if short && c.flags&flagPeerDone == 0 {
			c.flags &^= flagReadable // more will make a new edge, see receive
		}
		return true
	case errno == unix.EAGAIN:
		c.flags &^= flagReadable
	default:
		c.flags |= flagCloseNow
	}
	return false
}

// greetedTooSlowly ends a connection whose client has not sent a ClientHello in time.
func (d *Driver) greetedTooSlowly(c *Conn) {
	if t := c.secure(); t.buf != nil {
		d.engine.noteTLS(admission.SlowHandshake, c, "clients were too slow with their TLS handshakes", nil)
	}
	c.flags |= flagCloseNow
}

// noteTLS counts what becomes of clients that get no TLS, and says so once a second.
func (e *Engine) noteTLS(r admission.Reason, c *Conn, what string, err error) {
	n, due := e.cfg.Shed.Note(r)
	if !due {
		return
	}
	attrs := []any{"latest", c.RemoteAddr(), "count", n}
	if err != nil {
		attrs = append(attrs, "err", err)
	}
	level := slog.LevelWarn
	if r == admission.TLSError || r == admission.ClearText {
		level = slog.LevelDebug // scanners of the Internet send any number of them
	}
	e.cfg.Logger.Log(context.Background(), level, "engine: "+what, attrs...)
}

// Addresses of a connection as crypto/tls wants them.
func netAddr(c *Conn, local bool) net.Addr {
	if c.peer == (peerAddr{}) {
		return &net.UnixAddr{Net: "unix"}
	}
	if local {
		return net.TCPAddrFromAddrPort(c.LocalAddr())
	}
	return net.TCPAddrFromAddrPort(c.RemoteAddr())
}

// records returns the records that have come and were not lent.
func (t *tlsState) records() []byte {
	if t.buf == nil {
		return nil
	}
	return t.buf.b[t.lent:]
}

// keepRecords keeps b, which may lie in what was kept before, instead of that.
func (t *tlsState) keepRecords(c *Conn, b []byte) {
	old := t.buf
	t.buf, t.lent = nil, 0
	pool := &c.loop.e.buffers
	if len(b) > 0 {
		t.buf = pool.copyOf(c.Account(), admission.Input, b)
	}
	pool.put(old)
}

// drop gives back what the connection holds for TLS.
func (t *tlsState) drop(e *Engine) {
	t.letGo(e)
	e.buffers.put(t.buf)
	t.buf, t.lent = nil, 0
}
