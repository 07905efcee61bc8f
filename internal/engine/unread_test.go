//go:build linux

package engine_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// countBig makes h count its large answers.
func countBig(h *lineHandler) *atomic.Int32 {
	made, big := new(atomic.Int32), h.commands["big"]
	h.commands["big"] = func(d *engine.Driver, c *engine.Conn, args string) {
		made.Add(1)
		big(d, c, args)
	}
	return made
}

// Pipelined requests wait, and hold no output, while earlier answers are not read.
func TestPipelineWaitsForUnreadAnswers(t *testing.T) {
	const n = "100000"
	for _, hand := range []string{"", "hand "} {
		t.Run(hand+"big", func(t *testing.T) {
			h := newLineHandler()
			made := countBig(h)
			s := serve(t, engine.Config{Loops: 1}, h)
			slow, other := s.dial(), s.dial()
			slow.send(strings.Repeat(hand+"big "+n+"\n", 20))
			eventually(t, "the first is answered", func() bool { return made.Load() > 0 })
			for i := range 100 {
				other.send(fmt.Sprintln("echo", i))
				other.want(fmt.Sprint(i))
			}
			if made := made.Load(); made > 2 {
				t.Errorf("%d answers were made for a client that does not read, want 1 or 2", made)
			}
			slow.send("echo more\n")
			for range 20 {
				slow.want(pattern(n))
			}
			slow.want("more")
		})
	}
}

// A connection that waits until its answers are read is closed when its peer is lost.
func TestWaitingPipelineEndsWithPeer(t *testing.T) {
	h := newLineHandler()
	made := countBig(h)
	s := serve(t, engine.Config{Loops: 1}, h)
	c := s.dial()
	c.send(strings.Repeat("big 100000\n", 20))
	eventually(t, "the first is answered", func() bool { return made.Load() > 0 })
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
	eventually(t, "it is closed", func() bool { return s.Stats().Conns == 0 })
}

// The kernel does not hold megabytes for a peer that does not read, on a listener of either kind.
func TestUnsentOutputIsBounded(t *testing.T) {
	onEachListener(t, func(t *testing.T, listen func(*testing.T) net.Listener) {
		s := serveOn(t, engine.Config{Loops: 1}, newLineHandler(), listen(t))
		c := s.dial()
		c.send("echo serving\n")
		c.want("serving")
		c = s.dial() // the first may have been established before the server set the bound
		c.send("big 2000000\n")
		eventually(t, "most is pending", func() bool { return s.Stats().PendingBytes > 1_000_000 })
		c.want(pattern("2000000"))
	})
}
