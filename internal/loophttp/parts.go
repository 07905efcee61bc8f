//go:build linux

package loophttp

import (
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/looph2"
)

// find finds out what a new connection speaks: what was agreed by TLS or, in clear text, what its
// first bytes say. It reports whether more of them must come.
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
				// The beginning of what may be a head, with the time that one has.
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

// parts returns what the driver carries for HTTP/2.
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
