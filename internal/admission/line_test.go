package admission

import (
	"testing"
	"time"
)

// grower is a body of unknown length that comes as fast as there is room for it.
type grower struct {
	*cappedPeer
	has int64
}

// step takes twice the room, and reports whether it was granted.
func (g *grower) step(t *testing.T, most int64) bool {
	t.Helper()
	want := min(max(2*g.has, 64<<10), most)
	switch got := g.ReserveGrowing(want, -1, most); got {
	case Granted:
		g.Moved(want-g.has, -1)
		g.has = want
		return true
	case NoRoom:
		t.Fatalf("a body with %d bytes was refused", g.has)
	}
	return false
}

// Of bodies of unknown length, together twice the budget, the eldest has room to its end, then the next one;
// nobody is ended.
func TestGrowingBodiesTakeTurns(t *testing.T) {
	const most = 2 << 20
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(6 << 20)
	var growers []*grower
	for range 6 {
		growers = append(growers, &grower{cappedPeer: open(here)})
		*now++
	}
	for rounds := 0; len(growers) > 0; rounds++ {
		if rounds > 100 {
			t.Fatalf("%d wait for each other, with %d of %d held", len(growers), h.budget.Held(), h.budget.Bound())
		}
		*now += int64(20 * time.Millisecond)
		var rest []*grower
		for _, g := range growers {
			if g.step(t, most); g.has < most {
				rest = append(rest, g)
				continue
			}
			g.Complete()
			g.EndRequest()
			g.EndAhead()
			g.Close()
		}
		growers = rest
	}
	if h.Ended() != 0 || h.budget.Held() != 0 || len(h.line.of[0])+len(h.line.of[1]) != 0 {
		t.Errorf("%d ended; %d held, %d in line are left", h.Ended(), h.budget.Held(), len(h.line.of[0])+len(h.line.of[1]))
	}
}

// An eldest that stands still does not keep the others waiting.
func TestSlowGrowerIsPassed(t *testing.T) {
	const most = 4 << 20
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(8 << 20)
	slow, quick := &grower{cappedPeer: open(there)}, &grower{cappedPeer: open(here)}
	for slow.has < 2<<20 {
		slow.step(t, most)
	}
	*now += int64(time.Minute)
	for range 20 {
		*now += int64(20 * time.Millisecond)
		if quick.has < most {
			quick.step(t, most)
		}
	}
	if quick.has < most || slow.ended {
		t.Errorf("the quick one has %d, the slow one was ended: %v", quick.has, slow.ended)
	}
}
