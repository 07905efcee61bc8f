//go:build linux

package engine

import "testing"

// A connection for which no loop has room is not counted, not even for a moment: a loop that ends when its last connection
// closes does not look again.
func TestFullLoopDoesNotCountConnection(t *testing.T) {
	e := &Engine{cfg: Config{MaxLoopConns: 1}, loops: []*loop{new(loop), new(loop)}}
	for _, l := range e.loops {
		l.e = e
		l.count.Store(1)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 500_000 {
			if l := e.loops[0].leastLoaded(); l != nil {
				t.Error("a full loop took one more")
				return
			}
		}
	}()
	for looks := 0; ; looks++ {
		for i, l := range e.loops {
			if n := l.count.Load(); n != 1 {
				t.Errorf("loop %d, which is full with 1, counts %d", i, n)
				<-done
				return
			}
		}
		if looks%1000 != 0 {
			continue
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
