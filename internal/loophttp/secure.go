package loophttp

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
)

// TLS says how a listener is secured.
type TLS struct {
	Config *tls.Config

	// HTTP2 serves the connections whose clients have agreed to HTTP/2.
	HTTP2 Taker
}

// A Taker serves connections that another server has accepted.
type Taker interface {
	// Serve serves them until Shutdown.
	Serve() error
	// Take passes a connection on to Serve. wire is the socket; secure returns the connection
	// with wire, or what was made around it, below it. from is the client's address, of which
	// the socket may know another. closed is called once it is closed.
	Take(wire net.Conn, secure func(wire net.Conn) *tls.Conn, from netip.AddrPort, closed func())
	// Shutdown lets running requests finish; what is left when ctx ends is closed. What is taken later is
	// closed at once.
	Shutdown(ctx context.Context) error
}
