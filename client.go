package dunlin

import "net/netip"

// This file finds the client's address and scheme, with or without proxies: see Config.Proxy.Trusted.

// Remote returns the address of the client. This is the peer of the connection or, if the peer is
// in Config.Proxy.Trusted, the address that the proxy names. The port is 0 if the proxy names
// none. The address is invalid for a unix socket.
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

// Peer returns the address of the peer of the connection: the client or a proxy. If the proxy sends
// a header of the PROXY protocol, see Config.Proxy.Protocol, Peer returns the client's address. It
// is invalid for a unix socket.
func (r *Request) Peer() netip.AddrPort {
	r.alive()
	return r.wire.Remote()
}

// Secure reports whether the client used TLS, either to this server or to the nearest of
// Config.Proxy.Trusted. The proxy reports it in X-Forwarded-Proto, or in Forwarded if that is
// Config.Proxy.ForwardedHeader.
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
