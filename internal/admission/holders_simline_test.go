package admission

import (
	"net/netip"
	"testing"
	"time"
)

// Clients of the simulation that stand in line, and what the line promises after each step: nobody waits for whom
// there is room, and those were served before whose turn it was.
func TestLineInSimulation(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	var sum simCounts
	for seed := range seeds {
		s := emptySim(t, uint64(seed), 24<<20)
		s.burst(100, "small", (*simClient).small)
		s.burst(30, "echo", func(c *simClient) { c.echo(1<<20, 1<<20, 20<<20) })
		s.burst(60, "download", func(c *simClient) { c.download(1<<20, 12<<10) })
		s.burst(20, "bursting", (*simClient).bursts)
		if seed%3 == 2 {
			s.h.MaxAddress = 8 << 20
		}
		s.burst(150, "lined", func(c *simClient) { c.linedUpload(100<<10 + s.rand.Int64N(2<<20)) })
		s.burst(150, "lined alike", func(c *simClient) { c.linedUpload(512 << 10) })
		few := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(i % 5)}) }
		s.crowdFrom(300, "lined few", func(c *simClient) { c.linedUpload(256<<10 + s.rand.Int64N(256<<10)) }, few)
		s.run(25 * time.Second)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		sum.add(&s.counts)
	}
	t.Logf("%+v", sum)
	if sum.granted < 100*seeds || sum.leftLine < seeds {
		t.Errorf("nobody stood in line: %+v", sum)
	}
}

// linedUpload sends a body for which it stands in line as those do who read one in whole; some give up.
func (c *simClient) linedUpload(size int64) {
	s := c.s
	again := func(pause time.Duration) {
		c.over()
		c.after(time.Duration(s.rand.Int64N(int64(pause))), func() { c.linedUpload(size) })
	}
	c.force(Input, 1<<10)
	if c.a == nil || c.a.Ending() {
		return
	}
	c.place = c.a.enterLine(c)
	if place := c.place; s.rand.IntN(10) == 0 {
		s.after(time.Duration(s.rand.Int64N(int64(100*time.Millisecond))), func() {
			if c.place == place {
				s.counts.leftLine++
				again(time.Second)
			}
		})
	}
	c.askInLine(size, func(got Outcome) {
		c.a.leaveLine(c.place)
		c.place, c.askAgain = nil, nil
		if got == NoRoom {
			again(3 * time.Second)
			return
		}
		c.uses[Body] += size
		c.a.Working(true)
		c.after(time.Duration(s.rand.Int64N(int64(50*time.Millisecond))), func() { again(500 * time.Millisecond) })
	})
}

// askInLine asks until there is room or no hope of any: when woken, and every quarter of a second.
func (c *simClient) askInLine(n int64, then func(Outcome)) {
	s := c.s
	s.asking = c
	c.round++ // whatever else was to ask does not
	granted := c.place.granted && !c.a.Ending()
	if granted {
		s.counts.granted++
	}
	got := c.a.Reserve(Body, n)
	switch {
	case granted && got != Granted:
		s.t.Errorf("%s: what was granted in line is not there: %v", c.kind, got)
	case got == MustWait:
		s.counts.waits++
		c.askAgain = func() { c.askInLine(n, then) }
		c.after(time.Duration(roomWait/4), c.askAgain)
	default:
		then(got)
	}
}

// wake is called when the client may ask again. What it was granted was for nobody before it.
func (c *simClient) wake() {
	s, w := c.s, c.place
	if w.granted && !c.a.ending { // else it has been for some time
		src := c.a.source
		for _, o := range s.clients {
			p := o.place
			if p == nil || !p.inLine || p.class != w.class || p.n > w.n || p.n > s.h.roomNow().all || !s.h.fits(p.account, p.n) {
				continue
			}
			if o.a.source == src && p.at < w.at {
				s.t.Errorf("%s was served before one of its address that has waited for longer and wants no more", c.kind)
			}
			if o.a.source.held.Load() < src.held.Load()-w.n {
				s.t.Errorf("%s was served before one whose address holds less and who wants no more", c.kind)
			}
		}
	}
	if again := c.askAgain; again != nil {
		c.after(time.Duration(s.rand.Int64N(int64(time.Millisecond))), func() {
			if c.askAgain != nil {
				again()
			}
		})
	}
}

// checkLine has the invariant of the line.
func (s *sim) checkLine() {
	n := 0
	for _, src := range s.h.line.sources {
		for _, first := range src.lined.first {
			for w := first; w != nil; w = w.next {
				n++
				if w.n <= s.h.roomNow().all && s.h.fits(w.account, w.n) {
					s.t.Errorf("one waits for %d bytes, and has room: %d held of %d, %d by large holders", w.n, s.budget.Held(), s.budget.Bound(), s.h.much.Load())
				}
			}
		}
	}
	if int64(n) != s.h.line.n.Load() {
		s.t.Errorf("%d stand in line; counted are %d", n, s.h.line.n.Load())
	}
}
