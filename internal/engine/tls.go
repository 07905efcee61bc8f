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
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// TLS is a layer between a socket and the handler, which gets the plaintext. Package crypto/tls implements it without a socket
// (internal/tlsmem): the engine lends it the received records, and sends the records that it produces. Counts, limits and rates
// of the engine refer to the ciphertext.
//
//	greeting ──(ClientHello complete)──▶ hello ──▶ shaking ──▶ open ──▶ released
//	loop                                 line      goroutine   any owner hijacked, or passed on
//
// While a loop owns a connection, its tls.Conn holds no input: neither plaintext nor a part of a record. The connection keeps an
// incomplete record in a buffer that the budget counts.

// TLS configures TLS for the connections of a listener.
type TLS struct {
	// Config is as for crypto/tls. It must not be changed after ServeTLS.
	Config *tls.Config

	// Prompt asserts that Config.GetCertificate never blocks, so a handshake keeps its processor during the call.
	Prompt bool

	// Timeout limits the time from the beginning of a connection to the end of its handshake. Default: [Config.OpenTimeout].
	Timeout time.Duration

	// NotTLS is the answer to a client that sends clear text. Default: none.
	NotTLS []byte

	// Other is called after each handshake with the negotiated protocol (ALPN, "" for none). It returns nil if the handler serves
	// that protocol. Otherwise it returns a function that takes over the connection; the engine calls the function on a goroutine
	// of its own. Default: the handler serves all protocols.
	Other func(proto string) func(*Agreed)
}

// An Agreed is a connection passed to another server after its handshake.
type Agreed struct {
	// Socket is the socket, with all deadlines cleared.
	Socket net.Conn
	// Secure returns the TLS connection on top of socket. The argument must be Socket or a wrapper of Socket. Secure must be
	// called once.
	Secure func(socket net.Conn) *tls.Conn
	// Remote is the client's address. It differs from the remote address of Socket if a proxy relays the connection.
	Remote netip.AddrPort
	// Closed must be called once, when the connection is closed; until then the connection counts as open.
	Closed func()
}

// A secureConn is a Conn of a listener with TLS. A connection in clear text is a plain Conn, without memory for TLS.
type secureConn struct {
	Conn
	tls tlsState
}

// tlsState is the TLS state of a connection. It has the same owner as the Conn.
type tlsState struct {
	on    *TLS
	conn  *tlsmem.Conn // set at the beginning of the handshake
	buf   *buffer      // received records, or nil
	lent  int          // length of the prefix of buf that was lent to conn
	idle  int          // bytes of records since the last one that carried plaintext
	phase tlsPhase
	proto string // the negotiated protocol, "" for none
	suite uint16 // the suite negotiated by TLS 1.2, 0 for later versions
	left  bool   // conn may hold plaintext that the last Read had no room for, or an error that it has not returned
	ended bool   // the peer has sent close_notify
	bye   bool   // close_notify was sent to the peer

	passed bool // the connection was passed to another server, see TLS.Other
	held   bool // the connection counts in Engine.secured

	state atomic.Pointer[tls.ConnectionState] // made by the first call of Conn.TLS

	mu    sync.Mutex  // held by the user of the TLS state while the connection is away, see tlsend.go
	used  bool        // the owner holds mu
	noted atomic.Bool // the loop could not lock mu; the goroutine that holds mu then checks for the peer's end
	early []byte      // plaintext that was read in a check for the peer's end

	unseen bool // bytes may have arrived that were not checked for the peer's end
}

type tlsPhase uint8

const (
	tlsGreeting tlsPhase = iota
	tlsHello
	tlsShaking
	tlsOpen
	tlsReleased // no output is encrypted any more
)

// maxIdleRecords bounds the bytes of records that a peer may send in a row without any plaintext for the handler. Package
// crypto/tls buffers an incomplete handshake message; after the handshake such messages are only a few bytes long.
const maxIdleRecords = 64 << 10

// newConn returns a connection of a listener.
func newConn(ln *listener, fd int32) *Conn {
	if ln.tls == nil {
		return &Conn{fd: fd, slot: -1}
	}
	if ln.multipath {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // the socket did not inherit it
	}
	s := &secureConn{Conn: Conn{fd: fd, slot: -1, gen: genSecure}, tls: tlsState{on: ln.tls}}
	return &s.Conn
}

// secureMemory is the memory of an open connection with TLS in bytes, including the memory of crypto/tls. It is not charged to
// the budget: it is the same for every client, so it is no reason to evict one.
const secureMemory = 6 << 10

// count counts a connection with TLS after its handshake. If these connections use too much memory, it makes the loops close idle
// ones.
func (t *tlsState) count(e *Engine) {
	t.held = true
	e.secured.Add(1)
	if e.overSecureMemory() && e.idlePosted.CompareAndSwap(false, true) {
		e.broadcast(message{kind: msgDropIdle})
	}
}

// uncount undoes count for a connection that the engine no longer owns.
func (t *tlsState) uncount(e *Engine) {
	if t.held {
		t.held = false
		e.secured.Add(-1)
	}
}

// overSecureMemory reports whether connections with TLS use more than Config.SecureMemory.
func (e *Engine) overSecureMemory() bool {
	return e.cfg.SecureMemory > 0 && e.secured.Load()*secureMemory > e.cfg.SecureMemory
}

// Conn.gen is even without TLS and odd with TLS. It does not change any more when the connection belongs to a loop.
const (
	genSecure = 1
	genStep   = 2
)

// TLS returns the state of the connection after its handshake, or nil without TLS. All calls return the same pointer; the caller
// must not change the state. It is safe for concurrent use after the first call of the handler for the connection.
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

// Protocol returns the protocol negotiated by the handshake (ALPN), "" for none.
func (c *Conn) Protocol() string {
	if t := c.secure(); t != nil {
		return t.proto
	}
	return ""
}

// Suite returns the cipher suite negotiated by TLS 1.2 or earlier. It returns 0 for later versions, whose suites are all allowed
// in HTTP/2.
func (c *Conn) Suite() uint16 {
	if t := c.secure(); t != nil {
		return t.suite
	}
	return 0
}

// Secure reports whether the connection uses TLS. Safe for concurrent use.
func (c *Conn) Secure() bool { return c.secure() != nil }

// openTimeout returns the time limit of a new connection.
func (c *Conn) openTimeout(e *Engine) time.Duration {
	if c.awaitsHeader() {
		return e.cfg.ProxyHeader
	}
	if t := c.secure(); t != nil && t.on.Timeout > 0 {
		return t.on.Timeout
	}
	return e.cfg.OpenTimeout
}

// greeting reports whether a connection with TLS has not begun its handshake.
func (c *Conn) greeting() bool {
	t := c.secure()
	return t != nil && t.phase == tlsGreeting
}

// hasEnded reports whether the peer has sent close_notify. epoll does not report that.
func (c *Conn) hasEnded() bool {
	t := c.secure()
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// onlyAlert reports whether the unread bytes of a peer that has shut down its sending side are a single alert, which then is a
// close_notify. It judges by the record header and the number of bytes. Safe for concurrent use.
func (c *Conn) onlyAlert(unread int) bool {
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

// quiet reports whether no TLS message is incomplete.
func (t *tlsState) quiet() bool {
	return t.buf == nil && (t.phase == tlsGreeting || t.phase == tlsOpen || t.phase == tlsReleased)
}

// greet reads input until the ClientHello is complete. The driver runs a loop.
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
		d.engine.noteTLS(admission.ClearText, c, "clients have sent clear text to a TLS listener", nil)
		d.sendRaw(c, t.on.NotTLS)
		c.flags |= flagCloseAfter | flagLinger
		return
	}
	t.keepRecords(c, raw[:have])
	if greeting == tlsmem.Complete || have == len(raw) {
		t.phase = tlsHello
	}
}

// tookIn records the result of a read from the socket, and reports whether it returned bytes.
func (c *Conn) tookIn(n int, errno syscall.Errno, short bool) bool {
	switch {
	case n > 0:
		if short && c.flags&flagPeerDone == 0 {
			c.flags &^= flagReadable // more input causes a new event, see receive
		}
		return true
	case errno == unix.EAGAIN:
		c.flags &^= flagReadable
	default:
		c.flags |= flagCloseNow
	}
	return false
}

// greetedTooSlowly closes a connection whose client has not sent a complete ClientHello in time.
func (d *Driver) greetedTooSlowly(c *Conn) {
	if t := c.secure(); t.buf != nil {
		d.engine.noteTLS(admission.SlowHandshake, c, "clients were too slow with their TLS handshakes", nil)
	}
	c.flags |= flagCloseNow
}

// noteTLS counts a client whose TLS connection fails, and logs such failures at most once a second.
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
		level = slog.LevelDebug // scanners of the Internet cause many of them
	}
	e.cfg.Logger.Log(context.Background(), level, "engine: "+what, attrs...)
}

// netAddr returns an address of the connection as a net.Addr, for crypto/tls.
func netAddr(c *Conn, local bool) net.Addr {
	if c.peer == (peerAddr{}) {
		return &net.UnixAddr{Net: "unix"}
	}
	if local {
		return net.TCPAddrFromAddrPort(c.LocalAddr())
	}
	return net.TCPAddrFromAddrPort(c.RemoteAddr())
}

// records returns the received bytes that have not been lent to crypto/tls.
func (t *tlsState) records() []byte {
	if t.buf == nil {
		return nil
	}
	return t.buf.b[t.lent:]
}

// keepRecords replaces the kept records by a copy of b, which may be a part of them.
func (t *tlsState) keepRecords(c *Conn, b []byte) {
	old := t.buf
	t.buf, t.lent = nil, 0
	pool := &c.loop.e.buffers
	if len(b) > 0 {
		t.buf = pool.copyOf(c.Account(), memory.Input, b)
	}
	pool.put(old)
}

// drop releases the memory that the connection holds for TLS.
func (t *tlsState) drop(e *Engine) {
	t.uncount(e)
	e.buffers.put(t.buf)
	t.buf, t.lent = nil, 0
}
