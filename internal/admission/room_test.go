package admission

import (
	"testing"
	"time"
)

// Whether anybody waits any more for one who waits for room is asked now and then, however often room is given back for others.
func TestWhoWaitsInACrowdIsAskedWhetherItIsOver(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	const patience = 10 * time.Second
	began := time.Now()
	got := open(here).Acquire(func() Outcome {
		h.wake() // somebody else gives back
		if time.Since(began) > patience {
			return NoRoom
		}
		return MustWait
	}, nil, func() bool { return true })
	if got != MustWait {
		t.Errorf("it waited for %v, and then got %v", patience, got)
	}
}
