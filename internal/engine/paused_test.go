//go:build linux

package engine_test

import (
	"bytes"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// Input that arrives while a connection is paused is read after the pause.
func TestPausedConnections(t *testing.T) {
	h := newLineHandler()
	h.commands["pause"] = func(_ *engine.Driver, c *engine.Conn, _ string) {
		c.Notes |= engine.Paused
		c.SetDeadline(time.Millisecond)
	}
	seen := make(chan int32, 1)
	h.timeout = func(_ *engine.Driver, c *engine.Conn) {
		seen <- h.data.Load()
		c.Notes &^= engine.Paused
		c.SetDeadline(time.Minute)
		c.Wake()
	}
	s := serveUnix(t, engine.Config{}, h)
	c := s.dial()
	c.send("pause\necho first\n")
	c.want("first")
	before := h.data.Load()
	c.send("echo second\n")
	if n := <-seen; n != before {
		t.Errorf("it was read %d times meanwhile", n-before)
	}
	c.want("second")
}

// The loss of a peer is noticed at once while its connection is paused.
func TestPausedConnectionNoticesLostPeer(t *testing.T) {
	h := newLineHandler()
	h.commands["pause"] = func(d *engine.Driver, c *engine.Conn, _ string) {
		c.Notes |= engine.Paused
		c.SetDeadline(time.Hour)
		answer(d, "paused")
	}
	s := serve(t, engine.Config{}, h)
	c := s.dial()
	c.send("pause\n")
	c.want("paused")
	c.send("echo unread\n")
	if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	eventually(t, "it is closed", func() bool { return h.closed.Load() == 1 })
}

// laterHandler serves one line in each visit.
type laterHandler struct {
	*lineHandler
	began, goOn chan struct{}
	order       []string // owned by the loop
}

func (h *laterHandler) Data(d *engine.Driver, c *engine.Conn, in []byte) int {
	i := bytes.IndexByte(in, '\n')
	if i < 0 {
		return 0
	}
	line := string(in[:i])
	if line == "a0" {
		close(h.began)
		<-h.goOn
	}
	h.order = append(h.order, line)
	answer(d, line)
	if i+1 < len(in) {
		d.Later()
	}
	return i + 1
}

// A connection that leaves the rest of its input for later is served after connections that have become ready meanwhile.
func TestRemainingInputWaitsItsTurn(t *testing.T) {
	h := &laterHandler{newLineHandler(), make(chan struct{}), make(chan struct{}), nil}
	s := serveUnix(t, engine.Config{Loops: 1}, h)
	a, b := s.dial(), s.dial()
	for _, c := range []*client{a, b} {
		c.send("hello\n")
		c.want("hello")
	}
	a.send("a0\na1\na2\na3\na4\n")
	<-h.began
	b.send("b0\n")
	close(h.goOn)
	a.want("a0", "a1", "a2", "a3", "a4")
	b.want("b0")
	b.send("last\n")
	b.want("last")
	if at := slices.Index(h.order, "b0"); at > slices.Index(h.order, "a3") {
		t.Errorf("served in the order %q", h.order)
	}
}
