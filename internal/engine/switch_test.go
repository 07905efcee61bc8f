//go:build linux

package engine_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A source is a Protocol that sends a text, and takes back what the socket does not accept.
type source struct {
	text     string
	sent     int
	tookBack atomic.Int64
	closed   func()
	last     int // bytes of the last call of Data
}

func (s *source) Data(d *engine.Driver, c *engine.Conn, in []byte) int {
	s.last = min(len(s.text)-s.sent, 10_000)
	d.Out = append(d.Out, s.text[s.sent:s.sent+s.last]...)
	if s.sent += s.last; s.sent < len(s.text) {
		d.Later()
	}
	return len(in)
}

func (s *source) Unsent(n int) int {
	n = min(n, s.last)
	s.sent -= n
	s.tookBack.Add(int64(n))
	s.last = 0
	return n
}

func (s *source) End(*engine.Driver, *engine.Conn)             {}
func (s *source) Timeout(*engine.Driver, *engine.Conn, []byte) {}
func (s *source) Evicted(*engine.Driver, *engine.Conn)         {}
func (s *source) Pended(int64) bool                            { return true }
func (s *source) Blocked(*engine.Driver, int64, bool) bool     { return true }
func (s *source) Abandoned(*engine.Driver)                     {}
func (s *source) Closed()                                      { s.closed() }
func (s *source) AccountSet() *memory.AccountSet               { return nil }

// Output that a protocol takes back is not held by the engine, and is sent when the peer reads.
func TestProtocolTakesBackOutput(t *testing.T) {
	onEachListener(t, func(t *testing.T, listen func(*testing.T) net.Listener) {
		h := newLineHandler()
		from := &source{text: pattern("9000000")}
		h.commands["switch"] = func(_ *engine.Driver, c *engine.Conn, _ string) {
			from.closed = func() { h.Closed(c) }
			c.Switch(from)
		}
		budget := memory.New(0)
		s := serveOn(t, engine.Config{Budget: budget}, h, listen(t))
		c := s.dial()
		c.send("switch\n")
		eventually(t, "output is taken back", func() bool { return from.tookBack.Load() > 0 })
		if held := budget.HeldFor(memory.Output); held != 0 {
			t.Errorf("%d bytes are held as output", held)
		}
		got := make([]byte, len(from.text))
		if _, err := io.ReadFull(c, got); err != nil {
			t.Fatal(err)
		}
		if string(got) != from.text {
			t.Error("the peer got other bytes")
		}
	})
}
