package stdhttp

import (
	"net"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// netKeepAlive is the time that package net uses for TCP keep-alive by default.
const netKeepAlive = 15 * time.Second

// A listener limits the number of connections of a net/http server. A connection is counted from Accept until Server.count
// sees that it is closed.
type listener struct {
	lastListener
	service *Service
	tls     bool // its connections carry TLS
	once    sync.Once
	closed  chan struct{} // closed when the listener closes, so that Accept stops waiting for a slot
}

func newListener(s *Service, ln net.Listener, tls bool) *listener {
	return &listener{lastListener: lastListener{Listener: ln}, service: s, tls: tls, closed: make(chan struct{})}
}

// Accept waits until the limit permits one more connection, and then for a connection.
func (l *listener) Accept() (net.Conn, error) {
	if !l.awaitSlot() {
		return nil, net.ErrClosed
	}
	for {
		c, err := l.acceptOne()
		if err != nil {
			l.service.freeSlot()
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok && l.service.TCPKeepAlive != netKeepAlive {
			after := l.service.TCPKeepAlive // if it cannot be set, the first read returns the error
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: after > 0, Idle: after, Interval: after})
		}
		own := &timedConn{Conn: c, server: l.service.Server}
		if l.service.Addresses == nil && l.service.ProxyHeader == 0 {
			return own, nil // reading the PROXY header may take time, and the address is not needed here
		}
		from := addrPortOf(c)
		if !own.countAddress(from.Addr()) {
			l.service.refuseConn(c, from.String(), l.tls)
			continue
		}
		if l.service.ProxyHeader > 0 && l.service.TrustedProxies().Trusts(from.Addr()) {
			own.proxy = &proxyHeader{service: l.service, tls: l.tls}
		}
		return own, nil
	}
}

// refuseConn closes a connection that exceeds the limit for its address.
func (s *Service) refuseConn(c net.Conn, from string, tls bool) {
	if n, due := s.Shed.Note(admission.AddressLimit); due {
		s.Log.Warn("connections refused: their address is at its limit",
			"latest", from, "limit", s.MaxConnectionsPerAddress, "count", n)
	}
	if !tls {
		_, _ = c.Write(exchange.AddressRefusal) // this does not block, because the buffer of a new connection has room for it
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}
	_ = c.Close()
}

// Close stops accepting at once.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.lastListener.Close()
}

// stop makes Accept return net.ErrClosed after the last connection of the backlog.
func (l *listener) stop() {
	l.once.Do(func() { close(l.closed) })
	l.lastListener.stop()
}
