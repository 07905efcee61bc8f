//go:build linux

package engine_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// noPauses replaces the count of pauses for garbage collections, which the runtime makes at any time.
func noPauses() int64 { return 0 }

// watchCommand makes a server whose command "watch" runs watched code and answers whether it has waited. The test sets clock
// and switches.
func watchCommand(t *testing.T, run func(s *server, switches *atomic.Int64, args string)) *server {
	t.Helper()
	h, switches := newLineHandler(), new(atomic.Int64)
	s := serve(t, engine.Config{Loops: 1, TakeoverAfter: time.Hour, CountSwitches: switches.Load, CountPauses: noPauses}, h)
	h.commands["watch"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		d.Watch(true)
		run(s, switches, args)
		answer(d, fmt.Sprint(d.Waited()))
	}
	h.commands["sample"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		d.Watch(false)
		run(s, switches, args)
		answer(d, fmt.Sprint(d.Waited()))
	}
	return s
}

// On one processor the wait of a call is seen even if its thread has other goroutines to run and does not sleep.
func TestWatchSeesWaitsOnBusyThread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := watchCommand(t, func(s *server, _ *atomic.Int64, args string) {
		if args == "gives way" {
			for range 10 { // now and then the runtime runs a goroutine of another queue first
				runtime.Gosched()
			}
		}
		s.AdvanceClock(time.Millisecond)
	})
	c := s.dial()
	for range 5 {
		c.send("watch computes\nwatch gives way\n")
		c.want("false", "true")
	}
}

// A call that has slept does not count if it overlaps a garbage collection, because it may have waited for the collector.
func TestWatchIgnoresCallsThatWaitForTheCollector(t *testing.T) {
	h, switches, pauses := newLineHandler(), new(atomic.Int64), new(atomic.Int64)
	s := serve(t, engine.Config{Loops: 1, TakeoverAfter: time.Hour, CountSwitches: switches.Load, CountPauses: pauses.Load}, h)
	h.commands["watch"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		d.Watch(true)
		if args == "pause" {
			pauses.Add(1)
		}
		switches.Add(1)
		s.AdvanceClock(time.Millisecond)
		answer(d, fmt.Sprint(d.Waited()))
	}
	c := s.dial()
	c.send("watch\nwatch pause\nwatch\nwatch pause\nwatch\n") // the first pause begins the collection, the second one ends it
	c.want("true", "false", "false", "false", "true")
}

// A call of an unsuspected route is watched now and then, but only for the sleep of its thread.
func TestWatchTakesSamples(t *testing.T) {
	s := watchCommand(t, func(s *server, switches *atomic.Int64, _ string) {
		switches.Add(1)
		s.AdvanceClock(time.Millisecond)
	})
	c := s.dial()
	seen := 0
	for range 1100 {
		c.send("sample\n")
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "true\n" {
			seen++
		}
	}
	if seen < 4 || seen > 5 {
		t.Errorf("%d of 1100 calls were watched", seen)
	}
}

// Waited returns false for a call that has lost its loop, because that was already reported.
func TestWatchReportsNoTakeover(t *testing.T) {
	h, switches := newLineHandler(), new(atomic.Int64)
	s := serve(t, engine.Config{Loops: 1, CountSwitches: switches.Load}, h)
	entered, open := make(chan struct{}), make(chan struct{})
	h.commands["watch"] = func(d *engine.Driver, _ *engine.Conn, _ string) {
		d.Watch(true)
		close(entered)
		<-open
		switches.Add(1)
		answer(d, fmt.Sprint(d.Waited()))
	}
	c := s.dial()
	c.send("watch\n")
	<-entered
	eventually(t, "the loop is taken over", func() bool { return s.Stats().Takeovers == 1 })
	close(open)
	c.want("false")
}

// A takeover that overlaps a garbage collection is reported as such, because the call may only compute.
func TestTakeoverDuringCollection(t *testing.T) {
	for _, test := range []struct {
		name      string
		pauses    [2]int64 // when the monitor first sees the call, and when it takes over
		collected int32
	}{
		{"no collection", [2]int64{4, 4}, 0},
		{"all the time", [2]int64{5, 5}, 1},
		{"begins", [2]int64{4, 5}, 1},
		{"ends", [2]int64{5, 6}, 1},
		{"begins and ends", [2]int64{4, 6}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, looks := newLineHandler(), make(chan int64)
			defer close(looks)
			s := serve(t, engine.Config{Loops: 1, CountPauses: func() int64 { return <-looks }}, h) // the monitor looks when the test lets it
			g := newGate(h)
			c := s.dial()
			c.send("block it\n")
			<-g.entered
			looks <- test.pauses[0]
			looks <- test.pauses[1]
			eventually(t, "the loop is taken over", func() bool { return s.Stats().Takeovers == 1 })
			if got := h.collected.Load(); got != test.collected {
				t.Errorf("%d takeovers during a collection, want %d", got, test.collected)
			}
			close(g.open)
			c.want("it")
		})
	}
}
