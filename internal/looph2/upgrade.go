//go:build linux

package looph2

import (
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// An Upgrade is a request of HTTP/1.1 that requests an answer in HTTP/2.
type Upgrade struct {
	Settings []byte // value of HTTP2-Settings, see http2.ValidSettings
	Block    []byte // its fields, see http2.Block
	Consumed int    // bytes of the call's input up to the end of the request
	Given    int    // bytes of the call's input
}

// Upgrade begins HTTP/2 on a connection of HTTP/1.1. The output contains the 101 already.
func (h *Handler) Upgrade(sc *Scratch, d *engine.Driver, c *engine.Conn, u Upgrade) {
	s := h.open(sc, d, c)
	s.served, c.Count = int(c.Count), 0 // the engine counts later requests
	begin := len(s.h2.Out)
	ev, err := s.h2.Upgrade(u.Settings, u.Block)
	switch {
	case err != nil:
		s.fail(err, begin)
	case ev.Kind != http2.NeedMore:
		if !s.event(&ev, u.Consumed) {
			sc.count.Flush(d)
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
