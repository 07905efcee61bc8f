//go:build linux

package loophttp

import (
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// find determines the protocol of a new connection: from TLS (ALPN) or, in clear text, from its first bytes. p is nil for
// HTTP/1.1. wait reports that more bytes are needed.
func (h *handler) find(x *wire, d *engine.Driver, c *engine.Conn, in []byte) (p engine.Protocol, wait bool) {
	switch {
	case c.Secure():
		if c.Protocol() == "h2" {
			p = h.h2.Open(d, c)
		}
	case h.h2c && len(in) > 0:
		yes, maybe := http2.HasPreface(in)
		if maybe && !yes {
			if c.Proto == nil {
				// The input may be the beginning of a head, so the time limit of a head applies.
				x.use(d, c)
				c.Proto = x.newUnfinished()
				c.SetDeadline(h.server.HeadTimeout)
			}
			return nil, true
		}
		if yes {
			p = h.h2.Open(d, c)
			if u, ok := c.Proto.(*unfinished); ok {
				c.Proto = nil
				u.release()
			}
		}
	case len(in) == 0:
		return nil, false
	}
	c.Notes |= engine.Begun
	return p, false
}
