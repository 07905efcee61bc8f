package admission

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// One probe begins without room at a time, whatever waits. A large response keeps the place until there is room for it, and
// nothing remains of probes that have ended.
func TestProbe(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	holder := open(there)
	holder.Force(Output, 4<<20)
	holder.Answers(4 << 20)
	one, two := open(netip.MustParseAddr("192.0.2.8")), open(netip.MustParseAddr("192.0.2.9"))
	if one.ReserveFirst(1<<20) || !one.Probe(1<<20) || !one.Probing() {
		t.Fatal("one may not begin, though nobody else has")
	}
	if two.Probe(1 << 20) {
		t.Fatal("two may, with room for none")
	}
	if one.EndAhead(); one.Probing() || !two.Probe(1<<20) {
		t.Fatal("the next one may not when a small answer is there")
	}
	two.Force(Output, 1<<20)
	two.Answers(1 << 20)
	if two.EndProbe(); one.Probe(1 << 20) {
		t.Error("the next one may while a large answer is held without room")
	}
	holder.Release(Output, 1<<20)
	if !one.Probe(1 << 20) {
		t.Error("the next one may not though there is room by now")
	}
	if three := open(here); three.Probe(1 << 20) {
		t.Error("one may beside it")
	} else {
		three.Close()
	}
	one.Close()
	if h.promised.Load() != 0 || h.newcomers.Load() != 0 {
		t.Errorf("%d bytes are promised, and %d wait, when all are over", h.promised.Load(), h.newcomers.Load())
	}
}

// A waiting address that holds memory leaves the place to one that holds none.
func TestProbesTakeTurns(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	for range 16 {
		open(there).Force(Output, 256<<10)
	}
	other, greedy, newcomer := open(there), open(there), open(here)
	if !other.Probe(1 << 20) {
		t.Fatal("one of a greedy address may not begin, though nobody waits")
	}
	if got := newcomer.ReserveLikely(1 << 20); got != MustWait {
		t.Fatalf("a newcomer while it is under way: %v", got)
	}
	other.EndAhead()
	if greedy.Probe(1 << 20) {
		t.Error("another one of the address went before the newcomer")
	}
	if got := newcomer.ReserveLikely(1 << 20); got != Granted || !newcomer.Probing() {
		t.Errorf("the newcomer: %v", got)
	}
	if newcomer.EndAhead(); !greedy.Probe(1 << 20) {
		t.Error("the address has no turn when nobody else waits")
	}
}

// A probe whose action blocks leaves its place to others, until the blocked probes have promised half of the budget.
func TestProbesThatBlockLeaveTheirPlace(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	_, looks := fill(h, open)
	var probes []*cappedPeer
	waiting := open(here)
	for range 3 { // two that block, and one more
		p := open(there)
		if !p.Probe(1 << 20) {
			t.Fatalf("after %d that block no other may begin", len(probes))
		}
		if got := waiting.ReserveLikely(1 << 20); got != MustWait {
			t.Fatalf("one more beside it: %v", got)
		}
		before := *looks
		p.ProbeBlocks()
		p.ProbeBlocks() // may be reported twice
		if len(probes) < 2 && *looks == before {
			t.Error("nobody was told that there is a place")
		}
		waiting.Unwait()
		probes = append(probes, p)
	}
	if waiting.Probe(1 << 20) {
		t.Fatal("those that block have promised more than half of the budget")
	}
	if probes[0].EndAhead(); !probes[0].Probe(1<<20) == waiting.Probe(1<<20) {
		t.Error("the one that has left its place has taken another's with it")
	}
	probes[2].KeepAhead(10 << 10)
	if got := h.promised.Load() + h.blocked.Load(); got != 1<<20+10<<10 {
		t.Errorf("%d bytes are promised when one has begun again, and one has made 10 KB", got)
	}
	for _, p := range append(probes, waiting) {
		p.Close()
	}
	if h.promised.Load() != 0 || h.blocked.Load() != 0 {
		t.Errorf("%d and %d bytes are promised when all are over", h.promised.Load(), h.blocked.Load())
	}
}

// Whatever clients ask for again and again, memory stays within the bound, the slack and one response. Small requests are
// served however many large holders never end and ask for more.
func TestProbesAreBounded(t *testing.T) {
	const clients, large, small = 60, 1 << 20, 20 << 10
	for i := range 8 {
		blocks := i&4 != 0
		alone, known := i&1 != 0, i&2 != 0 // each has its own address; the large ones are known
		h, now, open := cappedHolders(0, 0)
		h.budget.SetBound(5 << 20)
		rnd := rand.New(rand.NewPCG(1, 2))
		type client struct {
			*cappedPeer
			from    netip.Addr
			until   int64 // the time its action ends
			little  bool
			holding int64
		}
		var all []*client
		for i := range clients {
			from := there
			if alone {
				from = netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
			}
			all = append(all, &client{from: from, little: i < 3})
		}
		served, most := 0, int64(0)
		for range 1_500 {
			*now += int64(10 * time.Millisecond)
			for _, i := range rnd.Perm(clients) {
				c := all[i]
				if c.cappedPeer == nil {
					c.cappedPeer = open(c.from)
				}
				switch {
				case c.ended:
					c.Release(Output, c.holding)
					c.Close()
					*c = client{from: c.from, little: c.little}
				case c.holding > 0:
					c.Moved(120, c.holding) // 12 KB/s
				case c.until == 0:
					ask := c.ReserveLikely
					if known && !c.little {
						ask = c.ReserveAhead
					}
					if !c.ReserveFirst(large) && ask(large) != Granted {
						continue
					}
					c.until = *now + rnd.Int64N(int64(50*time.Millisecond))
					if blocks {
						c.ProbeBlocks()
						c.until += int64(time.Second)
					}
				case c.until <= *now && c.little:
					c.EndAhead()
					c.until = 0
					served++
				case c.until <= *now:
					c.Answers(large)
					c.holding = large
					c.Force(Output, large)
					c.EndProbe()
				}
			}
			most = max(most, h.budget.Held()+h.promised.Load()+h.blocked.Load()-h.Ending())
		}
		bound := h.budget.Bound() + h.slack() + large
		if blocks {
			bound += h.budget.Bound() / blockedShare
		}
		if most > bound {
			t.Errorf("%d bytes were held and promised, more than %d", most, bound)
		}
		least := 1 // all get a turn
		switch {
		case known && blocks:
			least = 30 // of 45, if none of the three had to wait
		case known:
			least = 200
		}
		if served < least {
			t.Errorf("each from an address of its own %v, known to be large %v: %d were served who want little", alone, known, served)
		}
	}
}

// While probes have to pause, memory released elsewhere wakes no waiter.
func TestProbesThatPauseWakeNobody(t *testing.T) {
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	_, looks := fill(h, open)
	waiting := open(netip.MustParseAddr("192.0.2.8"))
	for range probeBurst {
		p := open(here)
		if !p.Probe(1 << 20) {
			t.Fatal("one may not begin, though nobody else has")
		}
		p.Force(Output, 100<<10)
		p.EndProbe()
		p.Close()
		p.Release(Output, 100<<10)
	}
	if got := waiting.ReserveLikely(1 << 20); got != MustWait {
		t.Fatalf("one more: %v", got)
	}
	*looks = 0
	other := open(here)
	for range 100 {
		other.Force(Input, 4<<10)
		other.Release(Input, 4<<10)
		if got := waiting.ReserveLikely(1 << 20); got != MustWait {
			t.Fatalf("one more: %v", got)
		}
	}
	if *looks > 1 {
		t.Errorf("those who wait were told to look %d times", *looks)
	}
	*now += int64(time.Second)
	other.Force(Input, 4<<10)
	if other.Release(Input, 4<<10); *looks == 0 {
		t.Error("nobody was told when there may be probes again")
	}
}
