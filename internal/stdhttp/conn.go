package stdhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/proxyproto"
)

// A timedConn is a connection of a Server. It implements Config.Timeouts.Write and Config.Timeouts.Body at low cost: a
// deadline is set once and allowed to expire. If it expires while an operation waits, it is set again. A peer that
// makes no progress before the second deadline is disconnected. So the time limit is between one and two times the
// timeout.
type timedConn struct {
	net.Conn
	server   *exchange.Server
	requests atomic.Int64    // number of requests, if they are counted
	handlers *sync.WaitGroup // handlers of the same server that have hijacked a connection and still run

	idle      atomic.Uint32
	unasked   atomic.Pointer[openConns] // counts it as a connection without a request; nil after the first request
	http2     atomic.Bool               // it uses HTTP/2, as far as known; set before unasked is cleared
	wasIdle   bool                      // it was idle before; used by ConnState only
	secure    bool                      // it carries TLS
	wasBusy   bool                      // the drain has seen it busy; used by the drain only
	idleSince time.Time                 // when the drain first saw it idle after it was busy, or zero; used by the drain only

	foreign atomic.Bool               // net/http or a handler has set a read deadline
	body    atomic.Pointer[TimedBody] // the body that is being read
	rest    atomic.Bool               // net/http reads the rest of a body, after the answer
	reads   readDeadline

	counted netip.Addr   // client address in the per-address connection count, or the zero Addr
	proxy   *proxyHeader // header of a trusted proxy, or nil

	streams connStreams // of HTTP/2

	write   atomic.Uint32
	writing sync.Mutex // held while the write deadline changes
}

// The owner of a connection's write deadline.
const (
	noDeadline uint32 = iota
	ourDeadline
	foreignDeadline // a handler, also after hijacking
)

// connKey is the context key of the *timedConn of a connection.
type connKey struct{}

// withConn is the ConnContext of the server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}

// connOf returns the timedConn below c, or nil.
func connOf(c net.Conn) *timedConn {
	if own, ok := c.(*timedConn); ok {
		return own // the common case, several times per request
	}
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	if wrapper, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapper.NetConn()
	}
	own, _ := c.(*timedConn)
	return own
}

// noteRequest records that the connection of a request has received a request.
func noteRequest(req *http.Request) {
	if c, ok := req.Context().Value(connKey{}).(*timedConn); ok && c != nil {
		if req.ProtoMajor == 2 && !c.http2.Load() {
			c.http2.Store(true)
		}
		c.asked()
	}
}

// speaksHTTP2 reports whether a TLS connection has negotiated HTTP/2.
func speaksHTTP2(c net.Conn) bool {
	over, ok := c.(*tls.Conn)
	return ok && over.ConnectionState().NegotiatedProtocol == "h2"
}

// hijacked returns the connection to hand to a hijacking handler. Handlers expect a *net.TCPConn. If a proxy has
// forwarded the connection, the result has the client's address.
func hijacked(c net.Conn) net.Conn {
	own, ok := c.(*timedConn)
	switch {
	case !ok:
		return c
	case own.proxy != nil && own.proxy.from != nil:
		return proxyproto.From(own.Conn, own.proxy.from)
	}
	return own.Conn
}

// addrPortOf returns the address of the peer, or the zero AddrPort.
func addrPortOf(c net.Conn) netip.AddrPort {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	addr, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.AddrPort{} // a unix socket
	}
	return addr
}

func timedOutIO(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Write writes p while the client accepts data in time.
func (c *timedConn) Write(p []byte) (sent int, err error) {
	if c.write.Load() == noDeadline {
		c.renewWrite()
	}
	for fresh := false; ; fresh = true {
		n, err := c.Conn.Write(p[sent:])
		sent += n
		c.streams.sent.Add(int64(n))
		switch {
		case err == nil || !timedOutIO(err):
			return sent, err
		case n == 0 && fresh:
			c.noteSlow()
			return sent, err
		case !c.renewWrite():
			return sent, err
		}
	}
}

// ReadFrom copies src. The kernel sends a regular file if possible.
func (c *timedConn) ReadFrom(src io.Reader) (sent int64, err error) {
	to, ok := c.Conn.(io.ReaderFrom)
	lim, f := exchange.RegularFile(src)
	if !ok || f == nil {
		return exchange.CopyPieces(c, src)
	}
	for {
		c.renewWrite()
		left := lim.N
		n, err := to.ReadFrom(lim)
		sent += n
		if err == nil || !timedOutIO(err) || c.write.Load() != ourDeadline {
			return sent, err
		}
		if n == 0 {
			c.noteSlow()
			return sent, err
		}
		// Without sendfile, more was read than written.
		if _, err := f.Seek(n-(left-lim.N), io.SeekCurrent); err != nil {
			return sent, err
		}
		lim.N = left - n
	}
}

// noteSlow counts a client that accepted no data, unless a handler set a shorter deadline.
func (c *timedConn) noteSlow() {
	if c.write.Load() == ourDeadline {
		c.server.NoteSlowReader(addrPortOf(c))
	}
}

// renewWrite sets our deadline. It returns false if another one is in force.
func (c *timedConn) renewWrite() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Load() == foreignDeadline {
		return false
	}
	c.write.Store(ourDeadline)
	return c.Conn.SetWriteDeadline(time.Now().Add(c.server.WriteTimeout)) == nil
}

// SetWriteDeadline replaces our deadline; the zero time restores it. net/http removes deadlines after each request,
// even if there is none. Our deadline then stays, so that requests do not pay for setting it again.
func (c *timedConn) SetWriteDeadline(t time.Time) error {
	if t.After(never) { // set by net/http for each request
		t = time.Time{}
	}
	if t.IsZero() && c.write.Load() != foreignDeadline {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.write.Store(foreignDeadline)
	if t.IsZero() {
		c.write.Store(noDeadline)
	}
	return c.Conn.SetWriteDeadline(t)
}

// release removes our deadlines from a hijacked connection.
func (c *timedConn) release() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Swap(foreignDeadline) == ourDeadline {
		_ = c.Conn.SetWriteDeadline(time.Time{}) // may be closed already
	}
	c.foreign.Store(true)
	c.reads.release(c.Conn)
}

// SetReadDeadline sets the read deadline. The zero time does not remove the deadline of a body that net/http still reads
// after the action. net/http calls SetReadDeadline several times per request, so it writes shared state only on a change.
func (c *timedConn) SetReadDeadline(t time.Time) error {
	if foreign := !t.IsZero(); c.foreign.Load() != foreign {
		c.foreign.Store(foreign)
	}
	if c.rest.Load() {
		switch now := time.Now(); {
		case t.IsZero(): // net/http interrupted a body read that continues after the action; bound it with BodyTimeout
			t = now.Add(c.server.BodyTimeout)
		case t.After(now): // it waits for the next request
			c.rest.Store(false)
		}
	}
	return c.setRead(t)
}

// SetDeadline sets both deadlines.
func (c *timedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite shuts down the write side.
func (c *timedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read reads from the connection. A read for a body is limited in time.
func (c *timedConn) Read(p []byte) (int, error) {
	if c.proxy != nil {
		if n, err := c.readFirst(p); n > 0 || err != nil {
			c.idle.CompareAndSwap(between, begun)
			return n, err
		}
	}
	if b := c.body.Load(); b != nil {
		return b.receive(p)
	}
	var n int
	var err error
	if c.idle.Load() == busy {
		n, err = c.read(p)
	} else {
		n, err = c.readRequest(p)
	}
	if err != nil && c.rest.Load() {
		// In full duplex, net/http would take later bytes for the next request.
		_ = c.Conn.Close()
	}
	return n, err
}
