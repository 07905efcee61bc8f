//go:build linux

package engine_test

import (
	"crypto/tls"
	"io"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// The last answer before the engine closes the connection arrives completely at a client that has sent more meanwhile. Closing
// a socket with unread input causes a reset, which overtakes the answer.
func TestLastAnswerBeforeCloseIsComplete(t *testing.T) {
	const size = "400000"
	for _, hand := range []string{"", "hand "} {
		for _, secure := range []bool{false, true} {
			name := map[string]string{"": "loop", "hand ": "worker"}[hand] + map[bool]string{false: "", true: " by TLS"}[secure]
			t.Run(name, func(t *testing.T) {
				h := newLineHandler()
				g := newGate(h)
				h.commands["last"] = func(d *engine.Driver, c *engine.Conn, args string) {
					h.commands["block"](d, c, "")
					answer(d, pattern(args))
					if secure {
						c.CloseAfterFlush() // it expects close_notify
					} else {
						c.CloseLingering()
					}
				}
				var s *server
				var c *client
				if secure {
					s = serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
					c = s.dialTLS(nil)
				} else {
					s = serve(t, engine.Config{Loops: 1}, h)
					c = s.dial()
				}
				c.send(hand + "last " + size + "\n")
				<-g.entered
				if hand == "" {
					eventually(t, "the loop has another driver", func() bool { return s.Stats().Takeovers == 1 })
				}
				if secure {
					if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
						t.Fatal(err)
					}
				} else {
					c.send("echo too late\n")
				}
				close(g.open)
				c.want("", pattern(size))
				if more, err := io.ReadAll(c.r); err != nil || len(more) > 0 {
					t.Errorf("then %d bytes, %v", len(more), err)
				}
			})
		}
	}
}
