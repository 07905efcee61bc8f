//go:build linux

package engine_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// newSlow adds the command "slow", which waits under a limit until the gate
// opens.
func newSlow(h *lineHandler, limit time.Duration) *gate {
	g := &gate{make(chan struct{}, 20_000), make(chan struct{})}
	h.commands["slow"] = func(*engine.Driver, *engine.Conn, string) {
		g.entered <- struct{}{}
		<-g.open
	}
	h.limits = map[string]time.Duration{"slow": limit}
	return g
}

func TestTimeLimitAnswersWhileHandlerRuns(t *testing.T) {
	for _, way := range []string{"slow a\n", "hand slow a\n"} {
		t.Run(way, func(t *testing.T) {
			h := newLineHandler()
			g := newSlow(h, 10*time.Millisecond)
			s := serve(t, engine.Config{Loops: 1}, h)
			c := s.dial()
			c.send("echo before\n" + way + "echo never\n")
			c.want("before", "too late")
			c.wantEOF()
			other := s.dial()
			other.send("echo other\n")
			other.want("other")
			close(g.open)
			eventually(t, "the late code has ended", func() bool { return h.gone.Load() == 1 })
		})
	}
}

func TestTimeLimitIsLiftedInTime(t *testing.T) {
	h := newLineHandler()
	g := newSlow(h, time.Hour)
	s := serve(t, engine.Config{Loops: 1}, h)
	c := s.dial()
	c.send("slow a\nhand slow b\n")
	<-g.entered
	close(g.open)
	c.want("a", "b")
	c.send("echo c\n")
	c.want("c")
	if n := h.gone.Load(); n != 0 {
		t.Errorf("%d calls lost their connection", n)
	}
}

// Whichever is first, the limit or the end of the code, each connection gets one of the two answers, and no part of another's
// answer.
func TestTimeLimitRacesWithReturn(t *testing.T) {
	h := newLineHandler()
	h.limits = map[string]time.Duration{"race": time.Millisecond}
	h.commands["race"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
			runtime.Gosched()
		}
	}
	s := serve(t, engine.Config{Loops: 2}, h)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 100 {
				c := s.dial()
				token := fmt.Sprintf("%d-%d", i, j)
				way := "race "
				if j%2 == 1 {
					way = "hand race "
				}
				c.send(way + token + "\n")
				if got, err := c.r.ReadString('\n'); err != nil || got != token+"\n" && got != "too late\n" {
					t.Errorf("got %q, %v; want %q or too late", got, err, token)
				}
				_ = c.Close()
			}
		})
	}
	wg.Wait()
}

// Code that claims the connection keeps it. The limit applies when it is released.
func TestHoldDelaysTimeLimit(t *testing.T) {
	h := newLineHandler()
	held, again := make(chan bool, 1), make(chan bool, 1)
	h.limits = map[string]time.Duration{"hold": time.Millisecond}
	h.commands["hold"] = func(d *engine.Driver, c *engine.Conn, _ string) {
		if !inTime(t, d, d.Claim()) {
			held <- false
			return
		}
		held <- true
		// The limit passes during these reads, which fail because of it.
		var b [1]byte
		for {
			if _, err := c.Read(b[:], d.TimeLeft(0)); err != nil && d.TimeLeft(0) == time.Nanosecond {
				break
			}
		}
		d.Release()
		for d.Claim() {
			d.Release()
			runtime.Gosched()
		}
		again <- d.Claim()
	}
	s := serve(t, engine.Config{Loops: 1}, h)
	for inTime := false; !inTime; {
		c := s.dial()
		c.send("hold x\n")
		inTime = <-held
		c.want("too late")
	}
	if <-again {
		t.Error("Hold was granted after the connection was taken")
	}
}

// inTime returns granted, the result of a request of d's code, and checks that it fails only because of the limit.
func inTime(t *testing.T, d *engine.Driver, granted bool) bool {
	if !granted && d.TimeLeft(0) > time.Nanosecond {
		t.Error("refused although the limit had not passed")
	}
	return granted
}

func TestUnlimit(t *testing.T) {
	h := newLineHandler()
	lifted := make(chan bool, 1)
	open := make(chan struct{})
	h.limits = map[string]time.Duration{"lift": 5 * time.Millisecond}
	h.commands["lift"] = func(d *engine.Driver, _ *engine.Conn, _ string) {
		if !inTime(t, d, d.LiftTimeout()) {
			lifted <- false
			return
		}
		lifted <- true
		<-open
	}
	s := serve(t, engine.Config{Loops: 1}, h)
	var all []*client
	for _, way := range []string{"", "hand "} { // the timer is set from the beginning on a worker
		for {
			c := s.dial()
			c.send(way + "lift x\n")
			if <-lifted {
				all = append(all, c)
				break
			}
			c.want("too late")
		}
	}
	// Longer than the limit, so that a timer that was not stopped would have fired.
	<-time.After(20 * time.Millisecond)
	close(open)
	for _, c := range all {
		c.want("x")
	}
}
