//go:build linux

package engine_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

func TestShutdown(t *testing.T) {
	h := newLineHandler()
	g := newGate(h)
	s := serve(t, engine.Config{}, h)
	idle, running, worker := s.dial(), s.dial(), s.dial()
	idle.send("echo ready\n")
	idle.want("ready")
	running.send("block running\n")
	<-g.entered
	worker.send("hand block worker\n")
	<-g.entered

	done := make(chan error)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.wantEOF()
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned %v while requests were running", err)
	default:
	}
	close(g.open)
	running.want("running")
	running.wantEOF()
	worker.want("worker")
	worker.wantEOF()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestShutdownTimeout(t *testing.T) {
	for _, command := range []string{"block", "hand block"} {
		t.Run(command, func(t *testing.T) {
			h := newLineHandler()
			g := newGate(h)
			s := serve(t, engine.Config{}, h)
			c := s.dial()
			c.send(command + " too long\n")
			<-g.entered
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Shutdown returned %v, want the context's error", err)
			}
			c.wantEOF()
			close(g.open)
		})
	}
}

func TestCloseInterruptsBlockedIO(t *testing.T) {
	h := newLineHandler()
	failed, entered := make(chan error, 1), make(chan struct{})
	h.commands["read"] = func(_ *engine.Driver, c *engine.Conn, _ string) {
		close(entered)
		_, err := c.Read(make([]byte, 10), 0)
		failed <- err
	}
	s := serve(t, engine.Config{}, h)
	c, slow := s.dial(), s.dial()
	c.send("read\n")
	<-entered
	slow.send("big 20000000\n")
	eventually(t, "output is pending", func() bool { return s.Stats().PendingBytes > 0 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the blocked read returned no error")
	}
	c.wantEOF()
}

func TestDraining(t *testing.T) {
	h := newLineHandler()
	g := newGate(h)
	h.commands["draining"] = func(d *engine.Driver, _ *engine.Conn, _ string) {
		<-g.open
		for !d.Draining() {
			time.Sleep(time.Millisecond)
		}
		answer(d, "draining")
	}
	s := serve(t, engine.Config{}, h)
	c := s.dial()
	c.send("block first\ndraining\n")
	<-g.entered
	done := make(chan error)
	go func() { done <- s.Shutdown(context.Background()) }()
	close(g.open)
	c.want("first", "draining")
	c.wantEOF()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Clients of connections in the backlog see them as established, and send.
func TestStopAcceptingEmptiesTheBacklog(t *testing.T) {
	s := serve(t, engine.Config{MaxConns: 1}, newLineHandler())
	first := s.dial()
	first.send("echo in\n")
	first.want("in")
	var waiting []*client
	for range 5 {
		c := s.dial()
		c.send("echo late\n")
		waiting = append(waiting, c)
	}
	s.StopAccepting()
	if conn, err := net.Dial("tcp", s.addr.String()); err == nil {
		conn.Close()
		t.Error("connections are still made")
	}
	for _, c := range append(waiting, first) {
		c.want("late")
		if c == waiting[len(waiting)-1] {
			first.send("echo late\n") // the connection still works
		}
	}
}
