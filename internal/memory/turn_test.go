package memory

import (
	"testing"
	"time"
)

// A request for a large answer waits for answers that are new or are read. While large answers are mostly not
// read, it evicts new ones. It waits again after a large answer was read, and ten seconds after the last eviction.
func TestTurnsForLargeAnswers(t *testing.T) {
	const mib = int64(1 << 20)
	h, now, open := cappedBudget(0, 0)
	h.SetBound(8 * mib)
	answer := func() *cappedPeer { // it fills the part for large holders
		p := open(there)
		p.BeginResponse(6 * mib)
		p.Force(Output, 6*mib)
		return p
	}
	end := func(p *cappedPeer) {
		p.Release(Output, p.Held())
		p.Close()
	}
	ask := func() Outcome {
		p := open(here)
		defer p.Close()
		return p.Reserve(Output, 4*mib)
	}
	for _, step := range []struct {
		name  string
		after time.Duration // of the answer
		want  Outcome
		ended bool
	}{
		{"a new answer", 0, MustWait, false},
		{"an unread answer", 2 * time.Second, MustWait, true},
		{"a new answer, after an unread one", 0, Granted, true},
		{"a new answer, after one that was read", 0, MustWait, false},
		{"another unread answer", 2 * time.Second, MustWait, true},
		{"a new answer, long after an unread one", 0, MustWait, false},
	} {
		switch step.name {
		case "a new answer, after one that was read":
			read := open(there)
			read.BeginResponse(4 * mib)
			read.EndResponse()
		case "a new answer, long after an unread one":
			*now += forgetTime
		}
		p := answer()
		*now += int64(step.after)
		if got := ask(); got != step.want || p.ended != step.ended {
			t.Errorf("beside %s: %v, it was evicted: %v, want %v, %v", step.name, got, p.ended, step.want, step.ended)
		}
		end(p)
	}
}
