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

// A timedConn is a connection of a Server. It implements Config.Timeouts.Write and Config.Timeouts.Body at low cost. The
// timedConn sets a deadline once and lets it expire. If the deadline expires while an operation waits, the timedConn sets
// a second deadline. A peer that makes no progress before the second deadline is disconnected. Therefore the time limit
// is between one and two times the timeout.
type timedConn struct {
	net.Conn
	server   *exchange.Server
	requests atomic.Int64    // number of requests, if they are counted
	handlers *sync.WaitGroup // handlers of the same server that have hijacked a connection and have not returned

	idle      atomic.Uint32             // state of the connection in net/http, see drain.go
	unasked   atomic.Pointer[openConns] // counts the connection as one without a request; nil after the first request
	http2     atomic.Bool               // the connection is known to use HTTP/2; set before unasked becomes nil
	wasIdle   bool                      // the connection was idle before; only ConnState uses this
	secure    bool                      // the connection carries TLS
	wasBusy   bool                      // the connection was busy during the drain; only the drain uses this
	idleSince time.Time                 // time when the drain first saw the connection idle after it was busy, or zero; only the drain uses this

	foreign atomic.Bool               // net/http or a handler has set a read deadline
	body    atomic.Pointer[TimedBody] // the body that is being read
	rest    atomic.Bool               // net/http reads the rest of a body after the answer
	reads   readDeadline

	counted netip.Addr   // address for which the connection is counted, or the zero Addr
	proxy   *proxyHeader // header of a trusted proxy, or nil

	streams connStreams // only for HTTP/2

	write   atomic.Uint32 // origin of the write deadline
	writing sync.Mutex    // held while the write deadline changes
}

// The following constants are the origins of the write deadline of a connection.
const (
	noDeadline uint32 = iota
	ourDeadline
	foreignDeadline // set by a handler, also after hijacking
)

// connKey is the context key of the *timedConn of a connection.
type connKey struct{}

// withConn is the ConnContext of the net/http server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}

// connOf returns the timedConn that c is or wraps, or nil.
func connOf(c net.Conn) *timedConn {
	if own, ok := c.(*timedConn); ok {
		return own // the common case, several times for each request
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

// hijacked returns the connection for a handler that hijacks c. Handlers expect a *net.TCPConn. If a proxy has forwarded
// the connection, the result has the address of the client.
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

// addrPortOf returns the address of the peer, or the zero AddrPort if the peer has no IP address.
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

// Write writes p. It fails if the client accepts no data for the time of the write timeout.
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

// ReadFrom copies src to the connection. If src is a regular file, the kernel sends it if possible.
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
		// If the kernel does not send the file, more bytes were read from it than were written.
		if _, err := f.Seek(n-(left-lim.N), io.SeekCurrent); err != nil {
			return sent, err
		}
		lim.N = left - n
	}
}

// noteSlow counts a client that accepted no data. It does not count the client if a handler has set the deadline.
func (c *timedConn) noteSlow() {
	if c.write.Load() == ourDeadline {
		c.server.NoteSlowReader(addrPortOf(c))
	}
}

// renewWrite sets the deadline of the timedConn. It returns false if a handler has set another deadline.
func (c *timedConn) renewWrite() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Load() == foreignDeadline {
		return false
	}
	c.write.Store(ourDeadline)
	return c.Conn.SetWriteDeadline(time.Now().Add(c.server.WriteTimeout)) == nil
}

// SetWriteDeadline replaces the deadline of the timedConn by t. If t is zero, SetWriteDeadline removes the deadline that
// a handler has set. net/http calls it with the zero time after each request, even if no handler has set a deadline. The
// deadline of the timedConn then remains, so that requests do not need to set it again.
func (c *timedConn) SetWriteDeadline(t time.Time) error {
	if t.After(never) { // net/http sets this time for each request
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

// release removes the deadlines of the timedConn from a hijacked connection.
func (c *timedConn) release() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Swap(foreignDeadline) == ourDeadline {
		_ = c.Conn.SetWriteDeadline(time.Time{}) // the connection may already be closed
	}
	c.foreign.Store(true)
	c.reads.release(c.Conn)
}

// SetReadDeadline sets the read deadline. If net/http still reads a body after the action, the zero time does not remove
// the deadline of that read. net/http calls SetReadDeadline several times for each request. Therefore it writes to shared
// memory only if a value changes.
func (c *timedConn) SetReadDeadline(t time.Time) error {
	if foreign := !t.IsZero(); c.foreign.Load() != foreign {
		c.foreign.Store(foreign)
	}
	if c.rest.Load() {
		switch now := time.Now(); {
		case t.IsZero(): // net/http has interrupted a read of the body that continues after the action: limit it by BodyTimeout
			t = now.Add(c.server.BodyTimeout)
		case t.After(now): // net/http waits for the next request
			c.rest.Store(false)
		}
	}
	return c.setRead(t)
}

// SetDeadline sets the read deadline and the write deadline.
func (c *timedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite closes the connection for writing.
func (c *timedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read reads from the connection. If it reads a body, the time limits of the body apply.
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
		// In full duplex, net/http would interpret the following bytes as the next request.
		_ = c.Conn.Close()
	}
	return n, err
}
