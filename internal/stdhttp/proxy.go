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

// A proxyHeader is what a connection of a trusted proxy has: it begins with a header of the
// PROXY protocol, which says whose connection it is. It is read when that is first asked
// for, which net/http does on the connection's goroutine before anything else.
type proxyHeader struct {
	service *Service
	tls     bool // what follows it is TLS

	once sync.Once
	rest []byte   // what was read beyond it
	from net.Addr // whose connection it is, nil for the proxy's own
	err  error    // what every Read gets if there was no good header
}

var (
	errHeaderSlow = errors.New("the PROXY protocol header did not come in time")
	errHeaderCut  = errors.New("the connection ended within the PROXY protocol header")
)

// named reads the header, once.
func (c *timedConn) named() *proxyHeader {
	p := c.proxy
	p.once.Do(func() {
		if p.err = c.readHeader(); p.err != nil {
			_ = c.Conn.Close()
			p.err = io.EOF // net/http would answer other errors
		}
	})
	return p
}

// readHeader waits for the header for as long as it may take. To a drain that is a connection which waits for a request:
// one on which nothing comes ends like others.
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
			return err // somebody has looked whether we listen, or the server is closing
		}
	}
}

// noteHeader counts and logs the end of a connection for want of a good header, and returns
// why.
func (s *Service) noteHeader(c net.Conn, err error) error {
	if n, due := s.Shed.Note(admission.ProxyHeader); due {
		s.Log.Warn("connections of proxies closed for their PROXY protocol header", "err", err, "latest", c.RemoteAddr().String(), "count", n)
	}
	return err
}

var errAddressLimit = errors.New("the address has as many connections as it may")

// rename makes client the peer of the connection, unless that has as many as it may.
func (c *timedConn) rename(client netip.AddrPort) error {
	if !c.take(client.Addr()) {
		c.proxy.service.refuseConn(c.Conn, client.String(), c.proxy.tls)
		return errAddressLimit
	}
	c.proxy.from = net.TCPAddrFromAddrPort(client)
	return nil
}

// take counts the connection for its address, unless that is a proxy's, which stands for
// many clients. It reports false if the address has as many as it may.
func (c *timedConn) take(from netip.Addr) bool {
	if c.server.TrustedProxies().Trusts(from) {
		return true
	}
	if !c.server.Addresses.Take(from) {
		return false
	}
	c.counted = from
	return true
}

// RemoteAddr returns the address of the client as far as the connection tells.
func (c *timedConn) RemoteAddr() net.Addr {
	if c.proxy != nil {
		if from := c.named().from; from != nil {
			return from
		}
	}
	return c.Conn.RemoteAddr()
}

// readFirst reads what came with the header, if any of it is left.
func (c *timedConn) readFirst(p []byte) (int, error) {
	h := c.named()
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, h.err
}
