//go:build linux

package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// A loop that cannot keep up serves old and new connections in the order of their requests.
func TestQueueIsInOrder(t *testing.T) {
	h := newLineHandler()
	var s *server
	var mu sync.Mutex
	var order []string
	first, sent := make(chan bool), make(chan bool)
	step := sync.OnceFunc(func() { first <- true; <-sent })
	h.commands["long"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		first <- true
		<-sent
		s.AdvanceClock(10 * time.Millisecond)
		answer(d, args)
	}
	h.commands["mark"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		mu.Lock()
		order = append(order, args)
		mu.Unlock()
		step()
		s.AdvanceClock(time.Millisecond)
		answer(d, args)
	}
	s = serve(t, engine.Config{Loops: 1, TakeoverAfter: time.Hour}, h)
	long, old := s.dial(), s.dial()
	old.send("echo before\n")
	old.want("before")
	var burst []*client
	for range 10 {
		burst = append(burst, s.dial())
	}
	eventually(t, "all are accepted", func() bool { return s.Stats().Conns == 12 })
	long.send("long ago\n")
	<-first
	for _, c := range burst {
		c.send("mark new\n")
	}
	sent <- true
	<-first // one of the burst is being served
	old.send("mark old\n")
	sent <- true
	long.want("ago")
	old.want("old")
	for _, c := range burst {
		c.want("new")
	}
	mu.Lock()
	defer mu.Unlock()
	if at := slices.Index(order, "old"); at != len(burst) {
		t.Errorf("served in the order %v, want the old one last", order)
	}
}
