package dunlin

import "net/netip"

// The client's address and scheme, behind proxies or not: see Config.TrustedProxies.

// Remote returns the address of the client: that of the connection's other end or, if that is one
// of Config.TrustedProxies, the one that it names, with port 0 unless it names a port too. It is
// invalid for a unix socket.
func (r *Request) Remote() netip.AddrPort {
	r.alive()
	return r.client()
}

func (r *Request) client() netip.AddrPort {
	if r.unread {
		return r.wire.Remote()
	}
	return r.app.server.Client(r.wire)
}

// Peer returns the address of the connection's other end. Behind a proxy that is the proxy, or the
// client if the proxy sends a header of the PROXY protocol, see Config.ProxyProtocol. It is invalid
// for unix sockets.
func (r *Request) Peer() netip.AddrPort {
	r.alive()
	return r.wire.Remote()
}

// Secure reports whether the client used TLS: to this server, or to the nearest of
// Config.TrustedProxies as that says by X-Forwarded-Proto, or by Forwarded if
// Config.ForwardedHeader is that.
func (r *Request) Secure() bool {
	r.alive()
	return r.secure()
}

func (r *Request) secure() bool {
	if r.unread {
		return r.wire.Secure()
	}
	return r.app.server.Secure(r.wire)
}
