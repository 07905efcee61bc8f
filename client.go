package dunlin

import "net/netip"

// Remote returns the address of the client: the address of the peer of the connection or, if the peer
// is in Config.Proxy.Trusted, the address that the proxy names. The port is 0 if the proxy does not
// name a port. The address is invalid for a unix socket.
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

// Peer returns the address of the peer of the connection, which is the client or a proxy. If the proxy
// sends a header of the PROXY protocol, see Config.Proxy.Protocol, Peer returns the client's address.
// The address is invalid for a unix socket.
func (r *Request) Peer() netip.AddrPort {
	r.alive()
	return r.wire.Remote()
}

// Secure reports whether the client used TLS to this server, or a trusted proxy says that it did (see
// Config.Proxy.Trusted). The proxy says so in X-Forwarded-Proto, or in Forwarded if
// Config.Proxy.ForwardedHeader is Forwarded.
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
