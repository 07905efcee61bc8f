//go:build linux

package looph2

import (
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// An Upgrade is a request of HTTP/1.1 that asks to be answered by HTTP/2.
type Upgrade struct {
	Settings []byte // of HTTP2-Settings, see http2.ValidSettings
	Block    []byte // its fields, see http2.Block
	Consumed int    // how many bytes of the call's input it and what was before it are
	Given    int    // of so many
}

// Upgrade begins HTTP/2 on a connection that has spoken HTTP/1.1, when its client has been told so in the output.
func (h *Handler) Upgrade(sc *Scratch, d *engine.Driver, c *engine.Conn, u Upgrade) {
	s := h.open(sc, d, c)
	s.served, c.Count = int(c.Count), 0 // what that is from here on is the engine's to say
	begin := len(s.h2.Out)
	ev, err := s.h2.Upgrade(u.Settings, u.Block)
	switch {
	case err != nil:
		s.fail(err, begin)
	case ev.Kind != http2.NeedMore:
		if !s.event(&ev, u.Consumed) {
			sc.flushCount(d)
			return
		}
		s.pump()
	}
	if s.endTurn(u.Consumed, u.Given) {
		d.More()
	} else if u.Consumed < u.Given {
		d.Again()
	}
}
