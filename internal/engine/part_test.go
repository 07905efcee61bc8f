//go:build linux

package engine_test

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// partHandler serves lines "id command arguments", each of which is a part of its connection. Answers are sent when they are
// ready, in any order, and begin with the id.
type partHandler struct {
	*lineHandler
	mu   sync.Mutex
	late map[*engine.Conn][]string // answers of parts that lost their connection
}

func (h *partHandler) Data(d *engine.Driver, c *engine.Conn, in []byte) (consumed int) {
	d.Scratch.(*scratch).uses++ // a race if a driver is ever shared
	h.mu.Lock()
	for _, line := range h.late[c] {
		answer(d, line)
	}
	delete(h.late, c)
	h.mu.Unlock()
	for {
		i := bytes.IndexByte(in[consumed:], '\n')
		if i < 0 {
			return consumed
		}
		line := in[consumed : consumed+i]
		consumed += i + 1
		if string(line) == "hand" && d.Inline() {
			d.HandOff()
			return consumed
		}
		if string(line) == "hand" {
			continue
		}
		if string(line) == "quit" {
			c.CloseAfterFlush()
			return consumed
		}
		id, rest, _ := strings.Cut(string(line), " ")
		name, args, _ := strings.Cut(rest, " ")
		d.EnterPart(consumed)
		// The line is still valid after other drivers have continued with the connection.
		h.commands[name](d, c, args)
		text := string(line)
		d.Leave()
		if text != id+" "+rest {
			text = "the input of a part has changed: " + text
		} else {
			text = id + " " + args
		}
		if !d.Expired() {
			answer(d, text)
			continue
		}
		h.mu.Lock()
		h.late[c] = append(h.late[c], text)
		h.mu.Unlock()
		c.Wake()
		return 0
	}
}

func (h *partHandler) Abandoned(d *engine.Driver, c *engine.Conn, cause any) {
	answer(d, fmt.Sprint("abandoned ", cause))
}

func newPartHandler() *partHandler {
	h := &partHandler{lineHandler: newLineHandler(), late: map[*engine.Conn][]string{}}
	h.commands["echo"] = func(*engine.Driver, *engine.Conn, string) {}
	h.commands["detach"] = func(d *engine.Driver, _ *engine.Conn, _ string) { d.DetachPart(); d.DetachPart() }
	h.commands["panic"] = func(_ *engine.Driver, _ *engine.Conn, args string) { panic(args) }
	h.commands["goexit"] = func(*engine.Driver, *engine.Conn, string) { runtime.Goexit() }
	return h
}

// Neither other parts of a connection nor other connections wait for a part that blocks.
func TestBlockedPartDoesNotDelayOthers(t *testing.T) {
	onOneProcessor(t, func(t *testing.T) {
		h := newPartHandler()
		g := newGate(h.lineHandler)
		s := serve(t, engine.Config{Loops: 1}, h)
		c, other := s.dial(), s.dial()
		var want []string
		for i := range 20 {
			// In one piece: the part after the one that blocks is served, too.
			c.send(fmt.Sprintf("%d echo before\n%d block %d\n%d echo behind\n", i, i, i, i))
			<-g.entered
			c.wantBoth(fmt.Sprintf("%d before", i), fmt.Sprintf("%d behind", i)) // each may lose its loop before it answers
			other.send("x echo meanwhile\n")
			other.want("x meanwhile")
			want = append(want, fmt.Sprintf("%d %d", i, i))
		}
		if away := s.Stats().Away; away != 0 {
			t.Errorf("%d connections are away", away)
		}
		close(g.open)
		var got []string
		for range want {
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		c.send("x echo again\n")
		c.want("x again")
	})
}

func TestPartReleasesLoop(t *testing.T) {
	h := newPartHandler()
	s := serve(t, engine.Config{Loops: 1}, h)
	c := s.dial()
	for i := range 200 {
		c.send(fmt.Sprintf("%d echo a\n%d detach b\n%d echo c\n", i, i, i))
		var got []string
		for range 3 {
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, line)
		}
		slices.Sort(got)
		if want := fmt.Sprintf("[%d a\n %d b\n %d c\n]", i, i, i); fmt.Sprint(got) != want {
			t.Fatalf("got %q", got)
		}
	}
}

// On a worker, which has no loop to lose, a part keeps its connection.
func TestPartOnAWorker(t *testing.T) {
	h := newPartHandler()
	s := serve(t, engine.Config{Loops: 1, TakeoverAfter: time.Hour}, h) // so the loop is not taken over
	c := s.dial()
	c.send("1 echo a\nhand\n2 detach b\n3 echo c\n")
	c.want("1 a", "2 b", "3 c")
	c.send("4 echo d\n")
	c.want("4 d")
}

// Output in many pieces does not wait until the peer has acknowledged each, on a listener of either kind: answers of parts, and
// flushed output.
func TestOutputDoesNotWaitForAcknowledgements(t *testing.T) {
	onEachListener(t, func(t *testing.T, listen func(*testing.T) net.Listener) {
		h := newPartHandler()
		h.commands["detach"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			d.DetachPart()
			if !c.NoDelay() {
				t.Error("answers of parts wait")
			}
		}
		s := serveOn(t, engine.Config{Loops: 1}, h, listen(t))
		c := s.dialPrepared("0 echo x\n", "0 x")
		c.send("1 detach x\n")
		c.want("1 x")

		lines := newLineHandler()
		lines.commands["stream"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			answer(d, "flushed")
			if err := d.Flush(0); err != nil || !c.NoDelay() {
				t.Error("streams wait", err)
			}
		}
		c = serveOn(t, engine.Config{Loops: 1}, lines, listen(t)).dialPrepared("echo x\n", "x")
		c.send("stream\n")
		c.want("flushed")
	})
}

// dialPrepared dials after the listener has the options that its connections inherit. The answer to an earlier client sets
// them.
func (s *server) dialPrepared(ask, answer string) *client {
	s.t.Helper()
	first := s.dial()
	first.send(ask)
	first.want(answer)
	return s.dial()
}

// A part that ends its goroutine does not end the connection, even if it has lost the connection.
func TestPanicOfPart(t *testing.T) {
	h := newPartHandler()
	g := newGate(h.lineHandler)
	block := h.commands["block"]
	h.commands["latepanic"] = func(d *engine.Driver, c *engine.Conn, args string) { block(d, c, args); panic(args) }
	h.commands["lategoexit"] = func(d *engine.Driver, c *engine.Conn, args string) { d.DetachPart(); runtime.Goexit() }
	c := serve(t, engine.Config{Loops: 1, Logger: quiet, TakeoverAfter: time.Hour}, h).dial() // so the loop is not taken over
	c.send("1 panic oh\n1 echo behind\n")
	c.want("abandoned oh", "1 behind")
	c.send("2 goexit\n2 echo behind\n")
	c.want("abandoned <nil>", "2 behind")

	c = serve(t, engine.Config{Loops: 1, Logger: quiet}, h).dial()
	c.send("3 latepanic oh\n3 echo behind\n")
	<-g.entered
	c.want("3 behind")
	close(g.open)
	c.send("4 lategoexit oh\n4 echo behind\nquit\n")
	c.want("4 behind")
	c.wantEOF()
}

// A connection may be closed, by either side, while parts of it run.
func TestConnectionClosesWhilePartsRun(t *testing.T) {
	h := newPartHandler()
	g := newGate(h.lineHandler)
	s := serve(t, engine.Config{Loops: 2}, h)
	for i := range 10 {
		c := s.dial()
		c.send("1 block a\n2 block b\n")
		<-g.entered
		<-g.entered
		if i%2 == 0 {
			c.send("quit\n")
			c.wantEOF()
		}
		c.Close()
	}
	eventually(t, "all connections are closed", func() bool { return s.Stats().Conns == 0 })
	close(g.open)
}

// A wake-up always causes a call of Data, however often it is repeated, and also while output is pending.
func TestWake(t *testing.T) {
	h := newPartHandler()
	conns := make(chan *engine.Conn, 1)
	h.commands["hello"] = func(_ *engine.Driver, c *engine.Conn, _ string) { conns <- c }
	h.commands["big"] = func(d *engine.Driver, _ *engine.Conn, args string) {}
	s := serve(t, engine.Config{Loops: 1}, h)
	c := s.dial()
	c.send("1 hello x\n")
	c.want("1 x")
	conn := <-conns
	var posts sync.WaitGroup
	for i := range 50 {
		posts.Go(func() {
			h.mu.Lock()
			h.late[conn] = append(h.late[conn], fmt.Sprint("posted ", i, " ", pattern("20000")))
			h.mu.Unlock()
			conn.Wake()
		})
	}
	posts.Wait()
	seen := map[string]bool{}
	for range 50 {
		line, err := c.r.ReadString('\n')
		if err != nil || !strings.HasSuffix(line, pattern("20000")+"\n") {
			t.Fatal(err)
		}
		seen[strings.Fields(line)[1]] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d different answers", len(seen))
	}
	c.send("quit\n")
	c.wantEOF()
	eventually(t, "it is closed", func() bool { return s.Stats().Conns == 0 })
	conn.Wake() // has no effect
}

// Many connections have parts that block now and then; their input arrives in pieces of any size.
func TestPartsUnderLoad(t *testing.T) {
	h := newPartHandler()
	h.commands["work"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		switch len(args) % 5 {
		case 0:
			d.DetachPart()
		case 1:
			for range 50 {
				runtime.Gosched()
			}
		}
	}
	s := serve(t, engine.Config{Loops: 2}, h)
	var clients sync.WaitGroup
	for n := range 8 {
		c := s.dial()
		clients.Go(func() {
			const parts = 300
			go func() {
				var b strings.Builder
				for i := range parts {
					fmt.Fprintf(&b, "%d work %s\n", i, strings.Repeat("x", (i*7+n)%40))
				}
				text := b.String()
				for at := 0; at < len(text); {
					size := min(1+(at*31+n)%900, len(text)-at)
					if _, err := c.Write([]byte(text[at : at+size])); err != nil {
						t.Error(err)
						return
					}
					at += size
				}
			}()
			seen := map[string]bool{}
			for range parts {
				line, err := c.r.ReadString('\n')
				if err != nil {
					t.Error(err)
					return
				}
				id, args, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				var i int
				fmt.Sscan(id, &i)
				if args != strings.Repeat("x", (i*7+n)%40) || seen[id] {
					t.Errorf("answer %q", line)
				}
				seen[id] = true
			}
		})
	}
	clients.Wait()
}
