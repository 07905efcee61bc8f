package stdhttp

import (
	"net"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// netKeepAlive is what package net sets on connections by itself.
const netKeepAlive = 15 * time.Second

// A listener keeps the bounds on connections for a server of net/http. What it
// accepts is counted until Server.count sees its end.
type listener struct {
	lastListener
	service *Service
	tls     bool // what it accepts speaks TLS
	once    sync.Once
	closed  chan struct{} // no longer worth waiting for a slot
}

func newListener(s *Service, ln net.Listener, tls bool) *listener {
	return &listener{lastListener: lastListener{Listener: ln}, service: s, tls: tls, closed: make(chan struct{})}
}

// Accept waits for a connection, and first until there may be one more.
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
			after := l.service.TCPKeepAlive // an error would show in the first read
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: after > 0, Idle: after, Interval: after})
		}
		own := &timedConn{Conn: c, server: l.service.Server}
		if l.service.Addresses == nil && l.service.ProxyHeader == 0 {
			return own, nil // its address, which a connection may take its time to tell, is not asked for here
		}
		from := addrPortOf(c)
		if !own.take(from.Addr()) {
			l.service.refuseConn(c, from.String(), l.tls)
			continue
		}
		if l.service.ProxyHeader > 0 && l.service.TrustedProxies().Trusts(from.Addr()) {
			own.proxy = &proxyHeader{service: l.service, tls: l.tls}
		}
		return own, nil
	}
}

// refuseConn closes a connection that is one too many.
func (s *Service) refuseConn(c net.Conn, from string, tls bool) {
	if n, due := s.Shed.Note(admission.AddressLimit); due {
		s.Log.Warn("connections refused: their address has as many as it may",
			"latest", from, "limit", s.MaxConnectionsPerAddress, "count", n)
	}
	if !tls {
		_, _ = c.Write(exchange.AddressRefusal) // a new connection has room for it
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}
	_ = c.Close()
}

// Close stops accepting.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.lastListener.Close()
}

// stop has Accept come to its end, after the connections that may still be taken
// from the backlog.
func (l *listener) stop() {
	l.once.Do(func() { close(l.closed) })
	l.lastListener.stop()
}
