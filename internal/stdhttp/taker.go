package stdhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// A Taker is a server for connections that another has accepted and secured, and whose clients have
// agreed to HTTP/2.
type Taker struct {
	server *Server
	from   takenListener

	mu    sync.Mutex
	begun bool
	ended chan struct{} // closed when Serve, if it has begun, takes no more
}

// NewTaker returns a server without connections.
func (s *Service) NewTaker() *Taker {
	t := &Taker{
		server: s.NewServer(nil),
		from:   takenListener{conns: make(chan net.Conn), closed: make(chan struct{})},
		ended:  make(chan struct{}),
	}
	t.server.Protocols = new(http.Protocols)
	t.server.Protocols.SetHTTP2(true)
	return t
}

// Serve serves them until Shutdown. It is called once.
func (t *Taker) Serve() error {
	t.mu.Lock()
	t.begun = true
	t.mu.Unlock()
	defer close(t.ended)
	if err := t.server.Server.Serve(&t.from); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Take passes a connection on to Serve, or closes it if that has ended. wire is the socket; secure returns
// the connection with wire, or what was made around it, below it. from is the client's address, of
// which the socket may know another. closed is called once it is closed.
func (t *Taker) Take(wire net.Conn, secure func(wire net.Conn) *tls.Conn, from netip.AddrPort, closed func()) {
	own := &timedConn{Conn: wire, server: t.server.service.Server, closed: closed}
	if from.IsValid() && from != addrPortOf(wire) { // the header was read by who has accepted it
		own.proxy = &proxyHeader{service: t.server.service, tls: true, from: net.TCPAddrFromAddrPort(from)}
		own.proxy.once.Do(func() {})
	}
	conn := secure(own)
	if !t.from.pass(conn) {
		_ = conn.Close() // which says so to the client
		closed()
	}
}

// Shutdown lets running requests finish; what is left when ctx ends is closed.
func (t *Taker) Shutdown(ctx context.Context) error {
	_ = t.from.Close() // a channel
	t.mu.Lock()
	begun := t.begun
	t.mu.Unlock()
	if begun {
		<-t.ended // at once: now the server has every connection there will be
	}
	return t.server.Shutdown(ctx)
}

// takenListener has connections that were accepted elsewhere.
type takenListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// pass waits until Accept takes the connection, and reports false if it will not.
func (l *takenListener) pass(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.closed:
		return false
	}
}

func (l *takenListener) Accept() (net.Conn, error) {
	select {
	case <-l.closed: // before a connection that comes at the same time
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *takenListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *takenListener) Addr() net.Addr { return takenAddr{} }

type takenAddr struct{}

func (takenAddr) Network() string { return "tcp" }
func (takenAddr) String() string  { return "connections of another server" }
