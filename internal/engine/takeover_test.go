//go:build linux

package engine_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// quiet is for tests whose handlers panic on purpose.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// onOneProcessor runs f with all processors, and with one.
func onOneProcessor(t *testing.T, f func(t *testing.T)) {
	t.Run("all processors", f)
	t.Run("one processor", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		f(t)
	})
}

func TestBlockedHandlerDoesNotDelayOthers(t *testing.T) {
	onOneProcessor(t, func(t *testing.T) {
		h := newLineHandler()
		g := newGate(h)
		s := serve(t, engine.Config{Loops: 1}, h)
		var blocked []*client
		for i := range 20 {
			c := s.dial()
			c.send(fmt.Sprintf("echo before\nblock %d\necho after\n", i))
			<-g.entered
			blocked = append(blocked, c)
			other := s.dial()
			other.send("echo meanwhile\n")
			other.want("meanwhile")
		}
		if n := s.Stats().Takeovers; n < 20 {
			t.Errorf("%d takeovers, want one for each of 20 blocked requests", n)
		}
		for _, c := range blocked {
			c.send("echo sent while blocked\n")
		}
		close(g.open)
		for i, c := range blocked {
			c.want("before", fmt.Sprint(i), "after", "sent while blocked")
			c.send("echo again\n")
			c.want("again")
		}
		eventually(t, "all connections are back", func() bool { return s.Stats().Away == 0 })
	})
}

func TestHandOff(t *testing.T) {
	onOneProcessor(t, func(t *testing.T) {
		h := newLineHandler()
		g := newGate(h)
		// Without a long TakeoverAfter, a loop could be taken over on a machine that is busy; "hand" would then answer in
		// place, after the gate.
		s := serve(t, engine.Config{Loops: 1, MaxWorkers: 3, IdleWorkers: 2, TakeoverAfter: time.Hour}, h)
		var clients []*client
		for i := range 10 {
			c := s.dial()
			c.send(fmt.Sprintf("echo before\nhand block %d\nhand echo same worker\necho after\n", i))
			c.want("before")
			clients = append(clients, c)
		}
		for range 3 {
			<-g.entered
		}
		eventually(t, "the other jobs are queued", func() bool {
			s := s.Stats()
			return s.WorkersBusy == 3 && s.JobsQueued == 7
		})
		close(g.open)
		for i, c := range clients {
			c.want(fmt.Sprint(i), "same worker", "after")
		}
		eventually(t, "the surplus worker goes", func() bool {
			s := s.Stats()
			return s.WorkersBusy == 0 && s.WorkersIdle <= 2 && s.JobsQueued == 0
		})
		eventually(t, "idle ones go, too", func() bool { return s.Stats().WorkersIdle == 0 })
		if s := s.Stats(); s.QueueWaitMost <= 0 {
			t.Errorf("want some queue wait: got %+v", s)
		}
	})
}

// A Read of bytes that have already arrived does not count as a wait.
func TestReadOfBufferedInputIsNoWait(t *testing.T) {
	h := newLineHandler()
	h.commands["read"] = func(d *engine.Driver, c *engine.Conn, _ string) {
		var b [4]byte
		_, err := c.Read(b[:1], time.Millisecond)
		timedOut := errors.Is(err, os.ErrDeadlineExceeded) && d.WaitedToRead() >= time.Millisecond
		answer(d, "send it")
		_ = d.Flush(0) // if it fails, a Read fails
		first, err1 := c.Read(b[:1], time.Minute)
		rest, err2 := c.Read(b[:], time.Minute) // all arrived at once
		answer(d, fmt.Sprint(timedOut, first, err1, rest, err2, d.WaitedToRead()))
	}
	s := serve(t, engine.Config{Loops: 1}, h)
	for _, prefix := range []string{"", "hand "} {
		c := s.dial()
		c.send(prefix + "read\n")
		c.want("send it")
		c.send("body!")
		c.want("true 1 <nil> 4 <nil> 0s")
	}
}

func TestDetachAndBlockingIO(t *testing.T) {
	h := newLineHandler()
	h.commands["body"] = func(d *engine.Driver, c *engine.Conn, args string) {
		answer(d, "send it")
		if err := d.Flush(0); err != nil {
			answer(d, "flush: "+err.Error())
			return
		}
		p := make([]byte, len(numbers())/10)
		n := 0
		for n < len(p) {
			m, err := c.Read(p[n:min(len(p), n+100_000)], time.Minute)
			if err != nil {
				answer(d, err.Error())
				return
			}
			n += m
		}
		if _, err := c.Write(p, time.Minute); err != nil {
			answer(d, err.Error())
			return
		}
		answer(d, "")
	}
	h.commands["late"] = func(d *engine.Driver, c *engine.Conn, _ string) {
		_, err := c.Read(make([]byte, 10), time.Millisecond)
		answer(d, fmt.Sprint(err))
	}
	s := serve(t, engine.Config{Loops: 1}, h)
	body := numbers()[:len(numbers())/10]
	for _, prefix := range []string{"", "hand "} {
		c, other := s.dial(), s.dial()
		c.send(prefix + "body\n")
		c.want("send it")
		other.send("echo meanwhile\n")
		other.want("meanwhile")
		go c.Write([]byte(body + "echo next\n"))
		c.want(body, "next")
	}
	t.Run("the peer ends too early", func(t *testing.T) {
		c := s.dial()
		c.send("body\n")
		c.want("send it")
		c.send("too little")
		c.closeWrite()
		c.want("EOF")
		c.wantEOF()
	})
	t.Run("the deadline passes", func(t *testing.T) {
		c := s.dial()
		c.send("late\n")
		c.want("i/o timeout")
		c.send("echo next\n")
		c.want("next")
	})
}

func TestHijack(t *testing.T) {
	h := newLineHandler()
	hijacked := make(chan net.Conn, 1)
	h.commands["hijack"] = func(d *engine.Driver, c *engine.Conn, args string) {
		nc, err := c.Hijack()
		if err != nil {
			t.Error(err)
		}
		hijacked <- nc
	}
	s := serve(t, engine.Config{}, h)
	for _, prefix := range []string{"", "hand "} {
		c := s.dial()
		c.send(prefix + "hijack\n")
		nc := <-hijacked
		eventually(t, "the engine has forgotten it", func() bool { return s.Stats().Conns == 0 })
		c.send("ping\n")
		if line := make([]byte, 5); true {
			if _, err := io.ReadFull(nc, line); err != nil || string(line) != "ping\n" {
				t.Fatalf("hijacked connection read %q, %v", line, err)
			}
		}
		if _, err := nc.Write([]byte("pong\n")); err != nil {
			t.Fatal(err)
		}
		c.want("pong")
		nc.Close()
		c.wantEOF()
	}
}

func TestHangupHook(t *testing.T) {
	for _, test := range []struct{ name, input string }{
		{"taken over", "wait\n"},
		{"by a worker", "hand wait\n"},
		{"with input waiting", "wait\necho never\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newLineHandler()
			entered, hung := make(chan struct{}), make(chan struct{}, 10)
			h.commands["wait"] = func(_ *engine.Driver, c *engine.Conn, _ string) {
				gone := make(chan struct{})
				c.SetHangup(func() { hung <- struct{}{}; close(gone) })
				close(entered)
				<-gone
				again := make(chan struct{})
				c.SetHangup(func() { close(again) }) // at once
				<-again
			}
			s := serve(t, engine.Config{}, h)
			c := s.dial()
			c.send(test.input)
			<-entered
			c.send("more\n")
			c.Close()
			<-hung
			eventually(t, "the connection is closed", func() bool { return s.Stats().Conns == 0 })
			if len(hung) != 0 {
				t.Error("the hook was called more than once")
			}
		})
	}
}

// In TestHangupAfterInput a peer finishes sending after a line that is still unread, and after no input.
func TestHangupAfterInput(t *testing.T) {
	h := newLineHandler()
	entered, looked, hung := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	h.commands["wait"] = func(d *engine.Driver, c *engine.Conn, args string) {
		c.SetHangupAfterInput(func() { hung <- struct{}{} })
		entered <- struct{}{}
		<-looked
		c.SetHangup(nil)
		answer(d, args)
	}
	s := serve(t, engine.Config{Loops: 1}, h)

	c := s.dial()
	c.send("wait 1\n")
	<-entered
	c.send("echo behind\n")
	c.closeWrite()
	// The only loop serves another connection, so it has seen the event.
	other := s.dial()
	other.send("echo other\n")
	other.want("other")
	if len(hung) != 0 {
		t.Error("the function was called before the input was read")
	}
	looked <- struct{}{}
	c.want("1", "behind")
	c.wantEOF()

	c = s.dial()
	c.send("wait 2\n")
	<-entered
	c.closeWrite()
	<-hung
	looked <- struct{}{}
	c.want("2")
	c.wantEOF()
}

func TestAbnormalEnds(t *testing.T) {
	h := newLineHandler()
	h.commands["panic"] = func(*engine.Driver, *engine.Conn, string) { panic("on purpose") }
	h.commands["goexit"] = func(*engine.Driver, *engine.Conn, string) { runtime.Goexit() }
	h.commands["late"] = func(d *engine.Driver, c *engine.Conn, args string) {
		d.Detach()
		h.commands[args](d, c, "")
	}
	onOneProcessor(t, func(t *testing.T) {
		s := serve(t, engine.Config{Loops: 1, Logger: quiet}, h)
		bystander := s.dial()
		for _, how := range []string{"", "hand ", "late ", "hand late "} {
			for command, want := range map[string]string{
				"panic": "abandoned on purpose", "goexit": "abandoned <nil>",
			} {
				for range 3 {
					c := s.dial()
					c.send("echo before\n" + how + command + "\n")
					c.want("before", want)
					c.wantEOF()
				}
				bystander.send("echo alive\n")
				bystander.want("alive")
			}
		}
	})
}

func TestDisconnectAtEveryPoint(t *testing.T) {
	const input = "echo one\nhand echo two\nnap\nbig 100000\nhand nap\necho three\n"
	h := newLineHandler()
	h.commands["nap"] = func(d *engine.Driver, _ *engine.Conn, _ string) {
		time.Sleep(time.Millisecond) // long enough for an occasional takeover
		answer(d, "awake")
	}
	s := serve(t, engine.Config{}, h)
	for n := range len(input) {
		for _, rst := range []bool{false, true} {
			c := s.dial()
			c.send(input[:n])
			if rst {
				if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
		}
	}
	c := s.dial()
	c.send("echo alive\n")
	c.want("alive")
	c.Close()
	eventually(t, "all connections are closed", func() bool { return s.Stats().Conns == 0 })
}

func TestTimeoutHandlerMayBlock(t *testing.T) {
	h := newLineHandler()
	entered, open := make(chan struct{}), make(chan struct{})
	h.timeout = func(d *engine.Driver, _ *engine.Conn) {
		d.Enter()
		close(entered)
		<-open
		d.Leave()
		answer(d, "timeout")
	}
	s := serve(t, engine.Config{Loops: 1, OpenTimeout: time.Hour}, h)
	c := s.dial()
	c.send("echo in\npartial")
	c.want("in")
	s.AdvanceClock(2 * time.Hour)
	<-entered
	other := s.dial()
	other.send("echo meanwhile\n")
	other.want("meanwhile")
	close(open)
	c.want("timeout")
	c.wantEOF()
}

func TestPipelinedBlockingRequests(t *testing.T) {
	h := newLineHandler()
	h.commands["nap"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		time.Sleep(2 * time.Millisecond)
		answer(d, args)
	}
	c := serve(t, engine.Config{}, h).dial()
	var want []string
	var all strings.Builder
	for i := range 60 {
		fmt.Fprintf(&all, "%s %d\n", []string{"nap", "echo", "hand nap"}[i%3], i)
		want = append(want, fmt.Sprint(i))
	}
	c.send(all.String())
	c.want(want...)
}

// BenchmarkEnterLeave measures the cost of takeover for a request that does not block.
func BenchmarkEnterLeave(b *testing.B) {
	h := &pairs{lineHandler: newLineHandler(), n: b.N}
	c := serve(b, engine.Config{}, h).dial()
	b.ResetTimer()
	c.send("go\n")
	c.want("done")
}

type pairs struct {
	*lineHandler
	n int
}

func (h *pairs) Data(d *engine.Driver, _ *engine.Conn, in []byte) int {
	for range h.n {
		d.Enter()
		d.Leave()
	}
	answer(d, "done")
	return len(in)
}
