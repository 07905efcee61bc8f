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

// noCollections replaces the count of garbage collections, of which the runtime makes some at any time.
func noCollections() int64 { return 0 }

// watchCommand makes a server whose command "watch" runs watched code and answers whether it has waited. The test sets clock
// and switches.
func watchCommand(t *testing.T, run func(s *server, switches *atomic.Int64, args string)) *server {
	t.Helper()
	h, switches := newLineHandler(), new(atomic.Int64)
	s := serve(t, engine.Config{Loops: 1, TakeoverAfter: time.Hour, CountSwitches: switches.Load, CountCollections: noCollections}, h)
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

// A call that has slept does not count if a garbage collection has ended meanwhile, for which it may have waited.
func TestWatchIgnoresCallsThatWaitForTheCollector(t *testing.T) {
	h, switches, collections := newLineHandler(), new(atomic.Int64), new(atomic.Int64)
	s := serve(t, engine.Config{Loops: 1, TakeoverAfter: time.Hour, CountSwitches: switches.Load, CountCollections: collections.Load}, h)
	h.commands["watch"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		d.Watch(true)
		if args == "collected" {
			collections.Add(1)
		}
		switches.Add(1)
		s.AdvanceClock(time.Millisecond)
		answer(d, fmt.Sprint(d.Waited()))
	}
	c := s.dial()
	c.send("watch\nwatch collected\nwatch\n")
	c.want("true", "false", "true")
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
