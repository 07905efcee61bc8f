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

// A timedConn is a connection of a Server. It gives effect to
// Config.WriteTimeout and Config.BodyTimeout at next to no cost: a deadline, once
// set, is left to pass. When it has, and something is waiting or comes to wait, it
// is set anew; a peer that lets this one pass without a byte is given up. So that
// takes once to twice the timeout.
type timedConn struct {
	net.Conn
	server   *exchange.Server
	requests atomic.Int64    // so far, if they are counted
	handlers *sync.WaitGroup // those that have hijacked a connection of the same server, and not returned

	idle    atomic.Uint32
	unasked atomic.Pointer[openConns] // counts it while nothing has been asked of it
	http2   atomic.Bool               // it speaks HTTP/2, as far as is known; set before unasked is cleared
	wasIdle bool                      // it has been idle before; for ConnState alone
	secure  bool                      // there is TLS above it
	wasBusy bool                      // the drain has seen it busy; for the drain alone
	rests   time.Time                 // ... and idle since, zero if it has not; likewise

	foreign atomic.Bool               // net/http or a handler has set a read deadline
	body    atomic.Pointer[TimedBody] // that is being read now
	rest    atomic.Bool               // net/http reads what is left of one, after the answer
	reads   readDeadline

	counted netip.Addr   // the address that it is counted for, the zero Addr for none
	proxy   *proxyHeader // of a trusted proxy, else nil

	streams connStreams // of HTTP/2

	write   atomic.Uint32
	writing sync.Mutex // held while the write deadline changes
}

// Who has set the write deadline of a connection.
const (
	noDeadline uint32 = iota
	ourDeadline
	foreignDeadline // a handler's, or that of one who has hijacked the connection
)

// connKey is the key under which the context of a connection has its *timedConn.
type connKey struct{}

// withConn is the ConnContext of the server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}

// connOf returns the connection below c, nil if there is none.
func connOf(c net.Conn) *timedConn {
	if own, ok := c.(*timedConn); ok {
		return own // asked several times for each request
	}
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	if taken, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = taken.NetConn()
	}
	own, _ := c.(*timedConn)
	return own
}

// noteAsked notes that the connection of a request has been asked something.
func noteAsked(req *http.Request) {
	if c, ok := req.Context().Value(connKey{}).(*timedConn); ok && c != nil {
		if req.ProtoMajor == 2 && !c.http2.Load() {
			c.http2.Store(true)
		}
		c.asked()
	}
}

// speaksHTTP2 reports whether a connection by TLS has agreed to HTTP/2.
func speaksHTTP2(c net.Conn) bool {
	over, ok := c.(*tls.Conn)
	return ok && over.ConnectionState().NegotiatedProtocol == "h2"
}

// hijacked returns a connection that was hijacked as its handler is to have it: handlers look
// for a *net.TCPConn. One that a proxy has passed on says whose it is.
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

// addrPortOf returns the address of a connection's peer, the zero AddrPort for none.
func addrPortOf(c net.Conn) netip.AddrPort {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	addr, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.AddrPort{} // that of a unix socket
	}
	return addr
}

func timedOutIO(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Write writes p, for as long as the client takes something of it in time.
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

// ReadFrom copies src; a regular file is sent by the system where it can do that.
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
		// Where the system did not send it, more was read than was written.
		if _, err := f.Seek(n-(left-lim.N), io.SeekCurrent); err != nil {
			return sent, err
		}
		lim.N = left - n
	}
}

// noteSlow counts a client that has taken nothing, unless a handler gave it less time.
func (c *timedConn) noteSlow() {
	if c.write.Load() == ourDeadline {
		c.server.NoteSlowReader(addrPortOf(c))
	}
}

// renewWrite sets our deadline; false if another is in force.
func (c *timedConn) renewWrite() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Load() == foreignDeadline {
		return false
	}
	c.write.Store(ourDeadline)
	return c.Conn.SetWriteDeadline(time.Now().Add(c.server.WriteTimeout)) == nil
}

// SetWriteDeadline sets a deadline in place of ours; with the zero time ours is in
// force again. Net/http takes a deadline back after each request, whether there is one
// or not: ours then stays, else each request would pay for setting it twice.
func (c *timedConn) SetWriteDeadline(t time.Time) error {
	if t.After(never) { // net/http's for each request
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

// release ends all this for one who has hijacked the connection.
func (c *timedConn) release() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Swap(foreignDeadline) == ourDeadline {
		_ = c.Conn.SetWriteDeadline(time.Time{}) // the connection may be closed already
	}
	c.foreign.Store(true)
	c.reads.release(c.Conn)
}

// SetReadDeadline is called by net/http several times for each request.
func (c *timedConn) SetReadDeadline(t time.Time) error {
	if foreign := !t.IsZero(); c.foreign.Load() != foreign {
		c.foreign.Store(foreign)
	}
	if c.rest.Load() {
		switch now := time.Now(); {
		case t.IsZero(): // it has interrupted a read of the body that outlasts the action, and reads on for itself
			t = now.Add(c.server.BodyTimeout)
		case t.After(now): // it waits for the next request
			c.rest.Store(false)
		}
	}
	return c.setRead(t)
}

// SetDeadline sets both.
func (c *timedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite says that nothing will follow.
func (c *timedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read reads from the connection; as part of a body no longer than that may take.
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
		// In full duplex net/http would take what comes later for the next request.
		_ = c.Conn.Close()
	}
	return n, err
}
