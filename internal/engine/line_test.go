//go:build linux

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

func TestUrgentJobsRunFirst(t *testing.T) {
	h := newLineHandler()
	g := newGate(h)
	order := make(chan string, 10)
	h.commands["note"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		order <- args
		answer(d, args)
	}
	s := serve(t, engine.Config{Loops: 1, MaxWorkers: 1}, h)
	var all []*client
	say := func(line string) {
		c := s.dial()
		c.send(line + "\n")
		all = append(all, c)
		eventually(t, "it waits", func() bool {
			st := s.Stats()
			return st.WorkersBusy == 1 && st.JobsQueued == len(all)-1
		})
	}
	say("hand block 0")
	<-g.entered
	say("hand note a")
	say("first note b")
	say("hand note c")
	say("first note d")
	close(g.open)
	for i, c := range all {
		c.want([]string{"0", "a", "b", "c", "d"}[i])
	}
	if got := <-order + <-order + <-order + <-order; got != "bdac" {
		t.Errorf("served in the order %s, want bdac", got)
	}
}

// TestJobsAreRefusedWhileWorkerIsBusy adds ever more clients, whose connections were away, while the only worker is busy.
func TestJobsAreRefusedWhileWorkerIsBusy(t *testing.T) {
	h := newLineHandler()
	g := newGate(h)
	s := serve(t, engine.Config{Loops: 1, MaxWorkers: 1, QueueTarget: time.Millisecond, Logger: quiet}, h)
	var clients []*client
	for range 600 {
		c := s.dial()
		c.send("echo hello\n")
		c.want("hello")
		clients = append(clients, c)
	}
	s.AdvanceClock(time.Second)
	busy := s.dial()
	busy.send("hand block busy\n")
	<-g.entered
	asked := 0
	for h.overdue.Load() == 0 {
		more := asked + 1 + asked/4
		if more > len(clients) {
			t.Fatalf("no job is refused while %d wait", asked)
		}
		for ; asked < more; asked++ {
			clients[asked].send(fmt.Sprintf("hand block %d\n", asked))
		}
		eventually(t, "all wait or some were refused", func() bool {
			return s.Stats().JobsQueued == asked || h.overdue.Load() > 0
		})
		s.AdvanceClock(2 * time.Millisecond)
		s.LookAtLine()
	}
	urgent := s.dial()
	urgent.send("first block urgent\n")
	for _, c := range clients[:asked] {
		c.want("overdue")
	}
	clients[0].send("echo still here\n")
	clients[0].want("still here")
	close(g.open)
	busy.want("busy")
	urgent.want("urgent")
}

func TestAdaptiveWorkers(t *testing.T) {
	h := newLineHandler()
	g := newGate(h)
	s := serve(t, engine.Config{Loops: 1, MaxWorkers: 100, AdaptiveWorkers: true, QueueTarget: -1}, h)
	var clients []*client
	for i := range 30 {
		c := s.dial()
		c.send(fmt.Sprintf("hand block %d\nhand echo again\n", i))
		clients = append(clients, c)
	}
	eventually(t, "as many work as may, and the others wait", func() bool {
		st := s.Stats()
		return st.WorkersMost == 20 && st.WorkersBusy == 20 && st.JobsQueued == 10
	})
	close(g.open)
	for i, c := range clients {
		c.want(fmt.Sprint(i), "again")
	}
	// The jobs are as quick as before, so the bound grows.
	eventually(t, "the bound has grown to the most", func() bool {
		for _, c := range clients {
			c.send("hand echo quick\n")
		}
		for _, c := range clients {
			c.want("quick")
		}
		return s.Stats().WorkersMost > 20
	})
}
