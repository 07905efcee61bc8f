package dunlin

import "net/netip"

// Who asks, behind proxies or not: see Config.TrustedProxies.

// Remote returns the address of the client: that of the peer, invalid when it has none (a
// unix socket), or behind Config.TrustedProxies the one that they say. Its port is then 0,
// unless they say that, too.
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

// Peer returns the address of the other end of the connection, which behind a proxy is the
// proxy's, unless that says whose connection it is, see Config.ProxyProtocol. It is invalid
// for unix sockets.
func (r *Request) Peer() netip.AddrPort {
	r.alive()
	return r.wire.Remote()
}

// Secure reports whether the client has asked by TLS: the server itself, or the nearest of
// Config.TrustedProxies, as that says by X-Forwarded-Proto or, if Config.ForwardedHeader is
// Forwarded, there.
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
