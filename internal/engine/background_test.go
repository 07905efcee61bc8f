//go:build linux

package engine_test

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// A call that moves to the background takes its own connection from the loop, even if the input after its request exceeds the
// budget and another connection is refused for it.
func TestBackgroundCallBeyondMemoryBudget(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 1}, newLineHandler())
	waiting, c := x.dial(), x.dial()
	c.send("echo in\n")
	c.want("in")
	waiting.send("half a line")
	eventually(t, "it is kept", func() bool { return x.budget.Held() > 0 })
	giveBack := x.fill(tightBudget - x.budget.Held())
	c.send("background one\nhalf a line")
	c.want("one")
	waiting.want("refused")
	waiting.wantEOF()
	giveBack()
	c.send(" that is unknown\n")
	c.want("unknown command half")
}

// The time that the engine waited for one peer does not count against the next.
func TestBackgroundWaitIsPerPeer(t *testing.T) {
	const grace = 10 * time.Minute // much longer than the test takes
	h := newLineHandler()
	begun, ended := make(chan *engine.Conn, 1), make(chan error, 1)
	h.background = func(d *engine.Driver, c *engine.Conn, _ string) {
		begun <- c
		_, err := c.Write([]byte(numbers()[:muchOutput]), 0)
		ended <- err
		c.Close()
	}
	s := serve(t, engine.Config{Loops: 1, OpenTimeout: -1, WriteGrace: grace, MinWriteRate: math.MaxInt32}, h)
	before := runtime.NumGoroutine()
	for range 3 {
		c := s.dial()
		c.send("background\n")
		served := <-begun
		eventually(t, "it waits for the peer", served.Waits)
		s.AdvanceClock(grace * 3 / 5)
		c.discard()
		if err := <-ended; err != nil {
			t.Fatalf("the peer was cut off: %v", err)
		}
		eventually(t, "its driver is free", func() bool { return runtime.NumGoroutine() <= before })
	}
}
