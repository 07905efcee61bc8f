//go:build linux

package loophttp

import (
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/looph2"
)

// find determines the protocol of a new connection: from TLS (ALPN) or, in clear text, from its first bytes. It reports whether
// more bytes are needed.
func (h *handler) find(x *wire, d *engine.Driver, c *engine.Conn, in []byte) (wait bool) {
	switch {
	case c.Secure():
		if c.Protocol() == "h2" {
			c.Notes |= engine.Parts
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
			return true
		}
		if yes {
			c.Notes |= engine.Parts
			if u, ok := c.Proto.(*unfinished); ok {
				c.Proto = nil
				u.release()
			}
		}
	case len(in) == 0:
		return false
	}
	c.Notes |= engine.Begun
	return false
}

// parts returns the driver's state for HTTP/2.
func (x *wire) parts() *looph2.Scratch {
	if x.h2 == nil {
		x.h2 = new(looph2.Scratch)
	}
	return x.h2
}

// serveParts serves a connection of HTTP/2.
func (x *wire) serveParts(d *engine.Driver, c *engine.Conn, in []byte) (consumed int) {
	x.inParts = true
	consumed = x.handler.h2.Data(x.parts(), d, c, in)
	x.inParts = false
	return consumed
}
