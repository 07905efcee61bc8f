//go:build linux

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

func TestEcho(t *testing.T) {
	for name, start := range map[string]func(testing.TB, engine.Config, engine.Handler) *server{
		"tcp": serve, "unix": serveUnix,
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, engine.Config{}, newLineHandler()).dial()
			for i := range 100 {
				c.send(fmt.Sprintf("echo %d\n", i))
				c.want(fmt.Sprint(i))
			}
		})
	}
}

func TestPipeliningKeepsOrder(t *testing.T) {
	c := serve(t, engine.Config{}, newLineHandler()).dial()
	var all strings.Builder
	var want []string
	for i := range 20_000 {
		fmt.Fprintf(&all, "echo %d\n", i)
		want = append(want, fmt.Sprint(i))
	}
	go c.Write([]byte(all.String()))
	c.want(want...)
}

func TestInputInTwoPieces(t *testing.T) {
	const input = "echo first\nhand echo second\necho third\n"
	h := newLineHandler()
	s := serve(t, engine.Config{}, h)
	for split := 1; split < len(input); split++ {
		c := s.dial()
		calls := h.data.Load()
		c.send(input[:split])
		eventually(t, "the first piece has been seen", func() bool { return h.data.Load() > calls })
		c.send(input[split:])
		c.want("first", "second", "third")
	}
}

func TestInputThatFillsTheBufferIsRefused(t *testing.T) {
	c := serve(t, engine.Config{ReadBuffer: 4096}, newLineHandler()).dial()
	c.send(strings.Repeat("x", 4096))
	c.wantEOF()
}

func TestSlowReader(t *testing.T) {
	s := serve(t, engine.Config{Loops: 1}, newLineHandler())
	slow, other := s.dial(), s.dial()
	const n = "3000000"
	slow.send(strings.Repeat("big "+n+"\n", 20))
	eventually(t, "output is pending", func() bool { return s.Stats().PendingBytes > 0 })
	for i := range 100 {
		other.send(fmt.Sprintf("echo %d\n", i))
		other.want(fmt.Sprint(i))
	}
	if pending := s.Stats().PendingBytes; pending > 3_100_000 {
		t.Errorf("%d bytes pending, want at most one answer's", pending)
	}
	for range 20 {
		slow.want(pattern(n))
	}
	eventually(t, "nothing is pending", func() bool { return s.Stats().PendingBytes == 0 })
	slow.send("echo after\n")
	slow.want("after")
}

func TestHalfClosedClientIsAnswered(t *testing.T) {
	for _, command := range []string{"echo", "hand echo", "block", "hand block"} {
		t.Run(command, func(t *testing.T) {
			h := newLineHandler()
			g := newGate(h)
			c := serve(t, engine.Config{}, h).dial()
			c.send(command + " answer\nparti")
			c.closeWrite()
			close(g.open)
			c.want("answer", "incomplete")
			c.wantEOF()
			if in := <-h.eofs; in != "parti" {
				t.Errorf("EOF saw %q, want the partial input", in)
			}
		})
	}
}

func TestCloseAfterFlush(t *testing.T) {
	for _, test := range []struct{ name, input, want string }{
		{"all consumed", "close done\n", "done"},
		{"input left", "close done\necho more\n" + strings.Repeat("x", 200_000), "done"},
		{"peer still sending", "bad\n", "unknown command bad"},
		{"by a worker", "hand close done\n", "done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, engine.Config{}, newLineHandler()).dial()
			c.send(test.input)
			c.want(test.want)
			c.wantEOF()
		})
	}
}

func TestOwnedOutput(t *testing.T) {
	h := newLineHandler()
	released := make(releases, 100)
	h.commands["owned"] = func(d *engine.Driver, _ *engine.Conn, n string) {
		answer(d, "before")
		d.WriteOwned([]byte(pattern(n)+"\n"), released)
		answer(d, "after")
	}
	s := serve(t, engine.Config{}, h)
	c := s.dial()
	for _, n := range []string{"0", "10", "100000", "8000000"} {
		c.send(strings.Repeat("owned "+n+"\n", 12))
		for range 12 {
			c.want("before", pattern(n), "after")
			<-released
		}
	}
	c = s.dial() // a new connection, whose system accepts less at first than that of a client that has read a lot
	c.send("owned 8000000\n")
	eventually(t, "output is pending", func() bool { return s.Stats().PendingBytes > 0 })
	c.Close()
	<-released
}

type releases chan struct{}

func (r releases) Release() { r <- struct{}{} }

func TestDeadlines(t *testing.T) {
	h := newLineHandler()
	h.commands["deadline"] = func(d *engine.Driver, c *engine.Conn, args string) {
		after, err := time.ParseDuration(args)
		if err != nil {
			panic(err)
		}
		c.SetDeadline(after)
		answer(d, "ok")
	}
	s := serve(t, engine.Config{OpenTimeout: 200 * time.Minute}, h) // much longer than the test takes

	t.Run("a new connection", func(t *testing.T) {
		c := s.dial()
		eventually(t, "the connection is open", func() bool { return s.Stats().Conns == 1 })
		c.send("echo here\n")
		c.want("here")
		s.AdvanceClock(199 * time.Minute)
		c.send("echo still\n")
		c.want("still")
		s.AdvanceClock(2 * time.Minute)
		c.want("timeout")
		c.wantEOF()
	})
	for _, command := range []string{"deadline", "hand deadline"} {
		t.Run(command, func(t *testing.T) {
			c := s.dial()
			c.send(command + " 60m\n")
			c.want("ok")
			s.AdvanceClock(50 * time.Minute)
			c.send(command + " 60m\n") // later: the filed tick stays
			c.want("ok")
			s.AdvanceClock(50 * time.Minute)
			c.send(command + " 10m\n") // earlier: must be filed again
			c.want("ok")
			s.AdvanceClock(9 * time.Minute)
			c.send("echo still\n")
			c.want("still")
			s.AdvanceClock(2 * time.Minute)
			c.want("timeout")
			c.wantEOF()
		})
	}
	t.Run("none", func(t *testing.T) {
		c := s.dial()
		c.send("deadline 0s\n")
		c.want("ok")
		s.AdvanceClock(1000 * time.Hour)
		c.send("echo still\n")
		c.want("still")
	})
}

func TestDeadlineWakesAnIdleLoop(t *testing.T) {
	s := serve(t, engine.Config{OpenTimeout: time.Millisecond}, newLineHandler())
	c := s.dial()
	c.want("timeout")
	c.wantEOF()
}

func TestStalledPeerIsDisconnected(t *testing.T) {
	s := serve(t, engine.Config{Loops: 1, OpenTimeout: -1, WriteGrace: 10 * time.Minute}, newLineHandler())
	c, other := s.dial(), s.dial()
	c.send("big 20000000\n")
	eventually(t, "output is pending", func() bool { return s.Stats().PendingBytes > 0 })
	s.AdvanceClock(9 * time.Minute)
	other.awaitTurn()
	if s.Stats().Conns != 2 {
		t.Fatal("cut off before the grace period was over")
	}
	for s.Stats().Conns == 2 { // in the first period the system may have accepted some bytes
		s.AdvanceClock(10 * time.Minute)
		other.awaitTurn()
	}
}
