package admission

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// grower is a body of unknown length that arrives as fast as there is room for it.
type grower struct {
	*cappedPeer
	has int64
}

// step doubles the body's memory, if that is granted.
func (g *grower) step(t *testing.T, most int64) {
	t.Helper()
	want := min(max(2*g.has, 64<<10), most)
	switch got := g.ReserveGrowing(want, -1, most); got {
	case Granted:
		g.Moved(want-g.has, -1)
		g.has = want
	case NoRoom:
		t.Fatalf("a body with %d bytes was refused", g.has)
	}
}

// Bodies of unknown length need twice the budget together. The oldest gets room until it ends, then the next one; none is
// ended.
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
	if h.Ended() != 0 || h.budget.Held() != 0 || h.line.size() != 0 {
		t.Errorf("%d ended; %d held, %d in line are left", h.Ended(), h.budget.Held(), h.line.size())
	}
}

// An oldest body that stalls does not keep the others waiting.
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

// A waiter that leaves room to a growing body gets that room as soon as the body is known to want no more, even if the body
// keeps its memory.
func TestWhoWasLeftRoomTellsThatItWantsNoMore(t *testing.T) {
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(8 << 20)
	looks := 0
	h.OnRoom(func() { looks++ })
	for range 3 {
		open(there).Force(Input, 1<<10) // so that the second wants more than its fair share
	}
	first, second := &grower{cappedPeer: open(there)}, open(here)
	for first.has < 1<<20 {
		*now += int64(20 * time.Millisecond)
		first.step(t, 4<<20)
	}
	if got := second.ReserveGrowing(3<<20, 3<<20, 3<<20); got != MustWait {
		t.Fatalf("the second, of which the first might need the room: %v", got)
	}
	if looks = 0; !first.Complete() || looks == 0 {
		t.Error("nobody is told")
	}
	if got := second.ReserveGrowing(3<<20, 3<<20, 3<<20); got != Granted {
		t.Errorf("the second has no room behind the first: %v", got)
	}
}

// Where no bodies wait, room that is too small for every waiter wakes none of them, however much was released.
func TestMuchThatIsTooLittleWakesNobody(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	h.budget.SetBound(8 << 20)
	holder, looks := fill(h, open)
	waiting := open(here)
	if got := waiting.ReserveAhead(3 << 20); got != MustWait {
		t.Fatal(got)
	}
	if holder.Release(Output, 1<<20); *looks != 0 {
		t.Error("somebody is told that wants more")
	}
	if holder.Release(Output, 3<<20); *looks == 0 {
		t.Error("nobody is told")
	}
}

// The first of a long line is found without a search at each request for room.
func TestLongLine(t *testing.T) {
	const most, slow = 4 << 20, 2000
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(1 << 30)
	for i := range slow {
		g := &grower{cappedPeer: open(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))}
		g.step(t, 100<<10)
		g.step(t, 100<<10)
		g.step(t, 100<<10)
	}
	*now += int64(time.Minute)
	g := &grower{cappedPeer: open(here)}
	h.line.mu.Lock()
	nobody := h.line.first(*now)
	h.line.mu.Unlock()
	for range 3 {
		g.step(t, most)
	}
	h.line.mu.Lock()
	defer h.line.mu.Unlock()
	if n := h.line.size(); n != slow+1 {
		t.Fatalf("%d stand in line", n)
	}
	if again := h.line.first(*now); nobody != nil || again != nil {
		t.Errorf("the first is %p, then %p: it was looked for twice", nobody, again)
	}
	*now += slow * 2 * linePause
	if first := h.line.first(*now); first != g.Account {
		t.Errorf("the first is %p, want %p", first, g.Account)
	}
}

// BenchmarkGrowingBesideSlow measures a growing body that takes its turn beside many stalled ones in the line.
func BenchmarkGrowingBesideSlow(b *testing.B) {
	for _, n := range []int{0, 100, 1000, 10_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const most = 4 << 20
			h, now, open := cappedHolders(0, 0)
			h.budget.SetBound(8 << 30)
			for i := range n {
				g := &grower{cappedPeer: open(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))}
				g.ReserveGrowing(100<<10, -1, most)
				g.ReserveGrowing(120<<10, -1, most)
				*now++
			}
			*now += int64(time.Minute)
			for b.Loop() {
				*now += int64(time.Millisecond)
				g := &grower{cappedPeer: open(here)}
				for want := int64(64 << 10); want <= most; want *= 2 {
					g.ReserveGrowing(want, -1, most)
					g.Moved(want, -1)
				}
				g.Complete()
				g.EndRequest()
				g.EndAhead()
				g.Close()
			}
		})
	}
}
