package store

import (
	"testing"
	"time"
)

// A process that had no processor for a while does not conclude that its store is silent.
func TestGuardWaitDetectsStarvation(t *testing.T) {
	const now = time.Hour // since the guard began
	for name, c := range map[string]struct {
		since, due, answered time.Duration
		silent               bool
	}{
		"timely check, no answer":     {now - silence, now + time.Minute, 0, true},
		"not for long":                {now + time.Minute, now + time.Minute, 0, false},
		"answer since the last check": {now - silence, now + time.Minute, now + time.Minute, false},
		"late check":                  {now - time.Minute, now - time.Minute, 0, false},
	} {
		g := &Guarded{guard: &guard{began: time.Now().Add(-now), parts: make([]guardPart, 1)}}
		p := &g.parts[0]
		p.answered.Store(int64(c.answered))
		cancelled := false
		w := &guardWait{g: g, part: p, since: c.since, due: c.due, cancel: func() { cancelled = true }, timer: time.NewTimer(time.Hour)}
		w.checkSilence()
		if p.silent.Load() != c.silent || cancelled != c.silent || g.counts.stalls.Load() == 1 != c.silent {
			t.Errorf("%s: got silent %v, cancelled %v, %d stalls", name, p.silent.Load(), cancelled, g.counts.stalls.Load())
		}
		if again := w.timer.Stop(); !c.silent && !again {
			t.Errorf("%s: got no further check", name)
		}
	}
}
