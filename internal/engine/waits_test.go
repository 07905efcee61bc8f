//go:build linux

package engine_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

func TestLoopWaitIncludesLongCall(t *testing.T) {
	h := newLineHandler()
	meanwhile := make(chan func(), 1)
	h.commands["long"] = func(d *engine.Driver, _ *engine.Conn, _ string) {
		(<-meanwhile)()
		answer(d, "done")
	}
	s := serve(t, engine.Config{Loops: 1, OpenTimeout: -1, TakeoverAfter: time.Hour}, h)
	long, behind := s.dial(), s.dial()
	behind.send("echo a\n")
	behind.want("a")
	if wait := s.Stats().LoopWaitMost; wait >= time.Minute {
		t.Errorf("waited %v before", wait)
	}
	meanwhile <- func() {
		behind.send("echo b\n")
		s.AdvanceClock(time.Minute)
	}
	long.send("long\n")
	long.want("done")
	behind.want("b")
	if wait := s.Stats().LoopWaitMost; wait < time.Minute {
		t.Errorf("waited %v, want a minute", wait)
	}
}
