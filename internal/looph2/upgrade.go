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
}

// Upgrade is Open for a connection of HTTP/1.1, after the 101. The first call of Data answers the request.
func (h *Handler) Upgrade(d *engine.Driver, c *engine.Conn, u Upgrade) engine.Protocol {
	s := h.open(d, c)
	s.upgrade = &u
	return s
}

// beginUpgraded begins the request of the upgrade. It reports whether the connection is over, and whether it still belongs to the
// driver.
func (s *session) beginUpgraded() (over, mine bool) {
	u := s.upgrade
	s.upgrade = nil
	begin := len(s.h2.Out)
	ev, err := s.h2.Upgrade(u.Settings, u.Block)
	if err != nil {
		s.fail(err, begin)
		return true, true
	}
	return false, ev.Kind == http2.NeedMore || s.event(&ev, 0)
}
