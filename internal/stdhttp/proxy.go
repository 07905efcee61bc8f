package stdhttp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/proxyproto"
)

// A proxyHeader is the state of a connection from a trusted proxy. Such a connection begins with a header of the PROXY
// protocol, which names the client. The header is read when it is first needed. net/http needs it first on the goroutine of
// the connection.
type proxyHeader struct {
	service *Service
	tls     bool // TLS follows the header

	once sync.Once
	rest []byte   // bytes that were read after the header
	from net.Addr // address of the client, nil for a connection of the proxy itself
	err  error    // error of every Read after an invalid header
}

var (
	errHeaderSlow = errors.New("the PROXY protocol header did not come in time")
	errHeaderCut  = errors.New("the connection ended within the PROXY protocol header")
)

// named returns the state of the header. The first call reads the header.
func (c *timedConn) named() *proxyHeader {
	p := c.proxy
	p.once.Do(func() {
		if p.err = c.readHeader(); p.err != nil {
			_ = c.Conn.Close()
			p.err = io.EOF // net/http would send an answer for other errors
		}
	})
	return p
}

// readHeader waits for the header within the time limit. During a drain, the connection counts as waiting for a request and
// is closed like others.
func (c *timedConn) readHeader() error {
	server := c.proxy.service
	if err := c.reads.renew(c.Conn, time.Now().Add(server.ProxyHeader)); err != nil {
		return err
	}
	c.idle.CompareAndSwap(between, waiting)
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			bigger := make([]byte, len(buf), min(max(2*cap(buf), 256), proxyproto.MaxHeader))
			copy(bigger, buf)
			buf = bigger
		}
		n, err := c.Conn.Read(buf[len(buf):cap(buf)])
		if n > 0 {
			c.noteBegun()
		}
		buf = buf[:len(buf)+n]
		took, client, bad := proxyproto.Parse(buf)
		switch {
		case bad != nil:
			return server.noteHeader(c.Conn, bad)
		case took > 0:
			c.proxy.rest = buf[took:]
			if len(c.proxy.rest) == 0 {
				c.idle.CompareAndSwap(begun, between)
			}
			if err := c.reads.renew(c.Conn, time.Time{}); err != nil || !client.IsValid() {
				return err
			}
			return c.rename(client)
		case timedOutIO(err) && c.idle.Load() == ending:
			if c.ended() {
				return io.EOF
			}
		case timedOutIO(err):
			return server.noteHeader(c.Conn, errHeaderSlow)
		case err == io.EOF && len(buf) > 0:
			return server.noteHeader(c.Conn, errHeaderCut)
		case err != nil:
			return err // the client only probed the port, or the server is closing
		}
	}
}

// noteHeader counts and logs the end of a connection without a valid header. It returns err.
func (s *Service) noteHeader(c net.Conn, err error) error {
	if n, due := s.Shed.Note(admission.ProxyHeader); due {
		s.Log.Warn("connections of proxies closed for their PROXY protocol header", "err", err, "latest", c.RemoteAddr().String(), "count", n)
	}
	return err
}

var errAddressLimit = errors.New("the address has as many connections as it may")

// rename changes the peer of the connection to client. It returns an error if client already has its maximum number of
// connections.
func (c *timedConn) rename(client netip.AddrPort) error {
	if !c.countAddress(client.Addr()) {
		c.proxy.service.refuseConn(c.Conn, client.String(), c.proxy.tls)
		return errAddressLimit
	}
	c.proxy.from = net.TCPAddrFromAddrPort(client)
	return nil
}

// countAddress counts the connection for the address from. The address of a trusted proxy is not counted, because it
// represents many clients. countAddress returns false if the address already has its maximum number of connections.
func (c *timedConn) countAddress(from netip.Addr) bool {
	if c.server.TrustedProxies().Trusts(from) {
		return true
	}
	if !c.server.Addresses.Take(from) {
		return false
	}
	c.counted = from
	return true
}

// RemoteAddr returns the address of the client if it is known, and otherwise the address of the proxy.
func (c *timedConn) RemoteAddr() net.Addr {
	if c.proxy != nil {
		if from := c.named().from; from != nil {
			return from
		}
	}
	return c.Conn.RemoteAddr()
}

// readFirst returns the bytes that were received together with the header.
func (c *timedConn) readFirst(p []byte) (int, error) {
	h := c.named()
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, h.err
}
