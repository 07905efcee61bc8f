//go:build linux

package engine

import (
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/proxyproto"
)

// unnamed is the type of Conn.Proto for a connection of a proxy that has not sent the client's address yet. The handler is not
// called for the connection until then.
type unnamed struct{}

// AccountSet implements State.
func (unnamed) AccountSet() *memory.AccountSet { return nil }

var awaitsHeader State = unnamed{}

// awaitsHeader reports whether the connection must begin with a header of the PROXY protocol, which is not complete yet.
func (c *Conn) awaitsHeader() bool { return c.Proto == awaitsHeader }

// isSilent reports whether no byte of the header has arrived. A drain treats such a connection as idle.
func (c *Conn) isSilent() bool {
	if !c.awaitsHeader() {
		return false
	}
	unread, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ)
	return err == nil && unread == 0
}

// source returns the address under which a client with address addr is counted. It returns the zero Addr if addr is a trusted
// proxy, which has many clients.
func (e *Engine) source(addr netip.Addr) netip.Addr {
	if e.cfg.Proxies.Trusts(addr) {
		return netip.Addr{}
	}
	return addr
}

// expectHeader records that the new connection must begin with a header.
func (e *Engine) expectHeader(c *Conn) {
	if e.cfg.ProxyHeader > 0 && e.cfg.Proxies.Trusts(c.peer.addr()) {
		c.Proto = awaitsHeader
	}
}

// Reasons to close a connection before its header is complete.
var (
	errHeaderSlow = errors.New("the PROXY protocol header did not arrive in time")
	errHeaderCut  = errors.New("the connection ended within the PROXY protocol header")
)

// noteHeader counts and logs a connection that is closed because it has no valid header.
func (e *Engine) noteHeader(c *Conn, err error) {
	if n, due := e.cfg.Shed.Note(admission.ProxyHeader); due {
		e.cfg.Logger.Warn("engine: connections of proxies closed for their PROXY protocol header", "err", err, "latest", c.RemoteAddr(), "count", n)
	}
	c.flags |= flagCloseNow
}

// readHeader reads the header and not a byte more. It peeks at the input until the header is complete, so no memory is held for
// it. It reports whether the connection may be read.
func (d *Driver) readHeader(c *Conn) bool {
	e := d.engine
	buf := d.loop.readBuf()
	buf = buf[:min(len(buf), proxyproto.MaxHeader)]
	n, errno := peek(c.fd, buf)
	switch {
	case errno == unix.EAGAIN:
		c.flags &^= flagReadable
		return false
	case errno != 0 || n == 0: // probably a health check of the port
		c.flags |= flagCloseNow
		return false
	}
	n, client, err := proxyproto.Parse(buf[:n])
	switch {
	case err != nil:
		e.noteHeader(c, err)
		return false
	case n == 0 && c.flags&flagPeerDone != 0:
		e.noteHeader(c, errHeaderCut)
		return false
	case n == 0:
		c.flags &^= flagReadable // more input causes a new event
		if c.deadline == 0 {
			c.SetDeadline(e.cfg.ProxyHeader)
		}
		return false
	}
	if _, errno := recv(c.fd, buf[:n]); errno != 0 {
		c.flags |= flagCloseNow
		return false
	}
	c.Proto = nil
	c.SetDeadline(c.openTimeout(e))
	return !client.IsValid() || d.rename(c, client)
}

// rename makes client the peer of c. If the address of the client is at its limit of connections, rename refuses c and returns
// false.
func (d *Driver) rename(c *Conn, client netip.AddrPort) bool {
	e := d.engine
	if !e.cfg.Addresses.Take(e.source(client.Addr())) {
		e.noteAddressLimit(client)
		if c.secure() != nil {
			c.flags |= flagCloseNow
			return false
		}
		d.Out = append(d.Out, e.cfg.AddressRefusal...)
		c.flags |= flagCloseAfter | flagLinger
		d.send(c)
		return false
	}
	c.peer, c.port = peerAddr{ip: client.Addr().As16()}, client.Port()
	return true
}

// relayed returns nc, the socket of c, as a net.Conn whose RemoteAddr is the client address that the proxy has sent.
func (c *Conn) relayed(nc net.Conn) net.Conn {
	from := c.RemoteAddr()
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		at := tcp.AddrPort()
		if at.Port() == from.Port() && at.Addr().Unmap().WithZone("") == from.Addr().WithZone("") {
			return nc
		}
	}
	if !from.IsValid() {
		return nc
	}
	return proxyproto.From(nc, net.TCPAddrFromAddrPort(from))
}
