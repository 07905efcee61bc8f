package admission

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"
)

// The policy of Holders alone, in virtual time: about a thousand clients of every kind
// against one budget, with what is promised as assertions after each step. DUNLIN_SEEDS
// says how many runs there are.
func TestHoldersInSimulation(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	if n, err := strconv.Atoi(os.Getenv("DUNLIN_SEEDS")); err == nil {
		seeds = n
	}
	for _, bound := range []int64{12 << 20, 256 << 20} {
		t.Run(fmt.Sprintf("%d MiB", bound>>20), func(t *testing.T) {
			t.Parallel()
			var sum simCounts
			for seed := range seeds {
				s := newSim(t, uint64(seed), bound)
				s.run(45 * time.Second)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
				sum.add(&s.counts)
			}
			t.Logf("%+v", sum)
			if sum.uploads == 0 || sum.ended == 0 || sum.small == 0 {
				t.Errorf("nothing was simulated: %+v", sum)
			}
			// Clients that hold much but are quick go before those that are slow.
			if part := float64(sum.uploads-sum.uploadsRefused) / float64(sum.uploads); part < 0.9 {
				t.Errorf("%.3f of the quick uploads were served", part)
			}
		})
	}
}

// simCounts is what happened in a simulation.
type simCounts struct {
	small, ended, endedWell        int // requests of those who hold little; ends, those of honest clients
	uploads, uploadsRefused, waits int // of quick clients
	downloads, downloadsCut        int
	beyond                         int64 // the most held beyond the bound, by holders that are being ended
}

func (c *simCounts) add(o *simCounts) {
	c.small += o.small
	c.ended += o.ended
	c.endedWell += o.endedWell
	c.uploads += o.uploads
	c.uploadsRefused += o.uploadsRefused
	c.waits += o.waits
	c.downloads += o.downloads
	c.downloadsCut += o.downloadsCut
	c.beyond = max(c.beyond, o.beyond)
}

// A sim is one run.
type sim struct {
	t       *testing.T
	rand    *rand.Rand
	now     int64
	queue   simQueue
	seq     int
	budget  *Budget
	h       *Holders
	clients []*simClient
	counts  simCounts
	asking  *simClient
}

// A simClient is a connection. Its account is opened when it first holds something.
type simClient struct {
	s     *sim
	kind  string
	from  netip.Addr
	a     *Account
	uses  [uses]int64
	round int // to tell events of what is over
}

type simEvent struct {
	at  int64
	seq int
	do  func()
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

func newSim(t *testing.T, seed uint64, bound int64) *sim {
	s := &sim{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: 1, budget: NewBudget(bound)}
	s.h = NewHolders(s.budget, func() int64 { return s.now })
	phone := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	enemy := netip.AddrFrom4([4]byte{192, 0, 2, 1})
	n := 0
	crowd := func(many int, kind string, run func(c *simClient), from func(i int) netip.Addr) {
		for range s.rand.IntN(many + 1) {
			n++
			c := &simClient{s: s, kind: kind, from: from(n)}
			s.clients = append(s.clients, c)
			s.after(time.Duration(s.rand.Int64N(int64(20*time.Second))), func() { run(c) })
		}
	}
	one := func(int) netip.Addr { return enemy }
	crowd(300, "small", (*simClient).small, phone)
	crowd(60, "upload", (*simClient).upload, phone)
	crowd(200, "download", func(c *simClient) { c.download(1<<20, 12<<10) }, phone)
	crowd(100, "download quick", func(c *simClient) { c.download(1<<20, 10<<20) }, phone)
	crowd(100, "download silent", func(c *simClient) { c.download(300<<10, 0) }, phone)
	crowd(200, "body slow", func(c *simClient) { c.slowBody(2<<20, 4<<20, 300) }, phone)
	crowd(100, "body nearly", func(c *simClient) { c.slowBody(4<<20-1000, 4<<20, 20) }, phone)
	crowd(100, "body chunked", func(c *simClient) { c.slowBody(1<<20, -1, 300) }, phone)
	crowd(60, "bursting", (*simClient).bursts, phone)
	crowd(10, "huge", func(c *simClient) { c.download(bound+bound/2, 1<<20) }, phone)
	switch s.rand.IntN(3) {
	case 0: // one client, many connections, each within what is fair
		crowd(1000, "crowd small", func(c *simClient) { c.slowBody(60<<10, 64<<10, 1) }, one)
	case 1: // ... or more
		crowd(500, "crowd large", func(c *simClient) { c.slowBody(1<<20, 4<<20, 100<<10) }, one)
	}
	return s
}

func (s *sim) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, simEvent{s.now + int64(d), s.seq, do})
}

// at is after for a client, as long as it is in the same round.
func (c *simClient) after(d time.Duration, do func()) {
	round := c.round
	c.s.after(d, func() {
		if c.round == round {
			do()
		}
	})
}

func (s *sim) run(d time.Duration) {
	until := s.now + int64(d)
	for len(s.queue) > 0 && s.queue[0].at <= until && !s.t.Failed() {
		e := heap.Pop(&s.queue).(simEvent)
		s.now = e.at
		s.asking = nil
		e.do()
		s.check()
	}
	for _, c := range s.clients {
		c.over()
	}
	if s.budget.Held() != 0 || s.h.Leaving() != 0 || s.h.Count() != 0 || s.h.spared.Load() != 0 || s.h.Waiting() != 0 || len(s.h.large) != 0 || s.h.lone != nil {
		s.t.Errorf("left behind: %d held, %d leaving, %d accounts, %d spared, %d waiting, %d large", s.budget.Held(), s.h.Leaving(), s.h.Count(), s.h.spared.Load(), s.h.Waiting(), len(s.h.large))
	}
	for i := range s.h.shards {
		if n := len(s.h.shards[i].sources); n != 0 {
			s.t.Errorf("%d addresses are left", n)
		}
	}
}

// check has the invariant of the ceiling, and that all sums are right.
func (s *sim) check() {
	bound := s.budget.Bound()
	if over := s.h.over(0); over > 0 && s.endable(nil) {
		s.t.Errorf("%d held, %d leaving, %d spared, of %d, and somebody could be ended", s.budget.Held(), s.h.Leaving(), s.h.spared.Load(), bound)
	}
	s.counts.beyond = max(s.counts.beyond, s.budget.Held()-bound-s.h.spared.Load())
	if s.seq%64 != 0 {
		return
	}
	var held, leaving, count int64
	for _, c := range s.clients {
		if c.a == nil {
			continue
		}
		if n := c.a.Held(); n > 0 {
			held += n
			count++
			if c.a.Ending() {
				leaving += n
			}
		}
	}
	if held != s.budget.Held() || leaving != s.h.Leaving() || int(count) != s.h.Count() {
		s.t.Errorf("%d held by %d, %d leaving; counted are %d by %d, %d", held, count, leaving, s.budget.Held(), s.h.Count(), s.h.Leaving())
	}
}

// endable reports whether anybody but one holds more than what is fair and may be ended.
func (s *sim) endable(but *simClient) bool {
	fair := s.h.Fair()
	for _, c := range s.clients {
		if c != but && c.a != nil && c.a.Held() > fair && !c.a.ending && !c.a.working {
			return true
		}
	}
	return false
}

func (c *simClient) account() *Account {
	if c.a == nil {
		c.a = c.s.h.Open(c, c.from)
	}
	return c.a
}

func (c *simClient) force(u Use, n int64) {
	c.s.asking = c
	c.uses[u] += n
	c.account().Force(u, n)
}

// free gives part of what is held back.
func (c *simClient) free(u Use, n int64) {
	c.uses[u] -= n
	c.a.Release(u, n)
}

// over ends the connection.
func (c *simClient) over() {
	c.round++
	if c.a == nil {
		return
	}
	c.a.Unwait()
	for u, n := range c.uses {
		c.free(Use(u), n)
		c.uses[u] = 0
	}
	if !c.a.CloseIdle() {
		c.a.Close()
	}
	c.a = nil
}

func (c *simClient) RemoteAddr() netip.AddrPort { return netip.AddrPortFrom(c.from, 1) }

// End checks that it is the right one who is ended.
func (c *simClient) End(a *Account) {
	s := c.s
	if a != c.a || !a.ending {
		s.t.Fatalf("%s: ended for another", c.kind)
	}
	s.counts.ended++
	fair := s.h.Fair()
	if a.Held() <= fair && s.endable(c) {
		s.t.Errorf("%s was ended, who holds %d, while others hold more than %d", c.kind, a.Held(), fair)
	}
	if a.working && s.asking != c {
		s.t.Errorf("%s was ended, who is not waited for", c.kind)
	}
	// Nobody has cost more when the list was made, unless one address holds more than half, or nobody holds much.
	cost, most, which := a.cost(s.now), 0.0, ""
	greedy := false
	for _, o := range s.clients {
		if o.a == nil {
			continue
		}
		greedy = greedy || o.a.source.held.Load() > s.budget.Bound()*2/5
		if !o.a.ending && !o.a.working && o.a.Held() > fair && s.now-o.a.since > 2*listLife && o.a.cost(s.now) > most {
			most, which = o.a.cost(s.now), o.kind
		}
	}
	if s.h.nextAt == s.now && cost < most && !greedy {
		s.t.Errorf("%s was ended at a cost of %.0f, but %s has %.0f", c.kind, cost, which, most)
	}
	switch c.kind {
	case "download quick", "small", "upload":
		s.counts.endedWell++
	case "download":
		s.counts.downloadsCut++
	}
	// What it holds is free when the goroutine that has it has noticed.
	c.round++
	s.after(time.Duration(s.rand.Int64N(int64(50*time.Millisecond))), c.over)
}

// small holds a little for a moment, again and again: heads and small bodies in pieces.
func (c *simClient) small() {
	s := c.s
	n := 1 + s.rand.Int64N(64<<10)
	s.counts.small++
	if s.rand.IntN(2) == 0 {
		c.force(Input, n)
	} else {
		others := s.endable(c)
		if got := c.account().Reserve(Body, n); got != Granted {
			if others || got == MustWait {
				s.t.Errorf("a small request was not granted: %v", got)
			}
			c.over()
			c.after(100*time.Millisecond, c.small)
			return
		}
		c.uses[Body] += n
	}
	c.after(time.Duration(s.rand.Int64N(int64(30*time.Millisecond))), func() {
		c.over()
		c.after(time.Duration(s.rand.Int64N(int64(time.Second))), c.small)
	})
}

// upload sends a body of 4 MiB at 10 MB/s, which is read in whole.
func (c *simClient) upload() {
	c.s.counts.uploads++
	c.grow(0, 4<<20, 10<<20, func() {
		c.a.Working(true)
		c.after(time.Duration(c.s.rand.Int64N(int64(20*time.Millisecond))), func() {
			c.over()
			c.after(time.Duration(c.s.rand.Int64N(int64(10*time.Second))), c.upload)
		})
	})
}

// grow reads a body of total bytes (unknown: -1) up to want, at a rate, and then goes on.
func (c *simClient) grow(have, want int64, rate float64, then func()) {
	s := c.s
	room := c.uses[Body]
	if have == room && have < want {
		more := min(max(64<<10, room), want-room)
		s.asking = c
		switch c.account().Reserve(Body, more) {
		case MustWait:
			s.counts.waits++
			c.after(50*time.Millisecond, func() { c.grow(have, want, rate, then) })
			return
		case NoRoom:
			if c.kind == "upload" {
				s.counts.uploadsRefused++
			}
			again := c.upload
			c.over()
			if c.kind == "upload" {
				c.after(time.Second, again)
			}
			return
		}
		c.uses[Body] += more
	}
	if have >= want {
		then()
		return
	}
	n := min(c.uses[Body]-have, 64<<10)
	c.after(time.Duration(float64(n)/rate*1e9), func() {
		c.a.Moved(n, want-have-n)
		c.grow(have+n, want, rate, then)
	})
}

// slowBody sends the first part of a body quickly, and the rest at a rate of its own.
func (c *simClient) slowBody(first, total int64, rate float64) {
	c.grow(0, first, 10<<20, func() { c.drip(first, total, rate) })
}

func (c *simClient) drip(have, total int64, rate float64) {
	c.after(2*time.Second, func() {
		n := int64(rate * 2)
		left := int64(-1)
		if total > 0 {
			left = total - have - n
			if left <= 0 {
				first, _ := have, 0
				c.over()
				c.after(10*time.Millisecond, func() { c.slowBody(first, total, rate) }) // once more
				return
			}
		}
		c.a.Moved(n, left)
		c.drip(have+n, total, rate)
	})
}

// download holds an answer and takes it at a rate, in pieces of 128 KB as a socket does.
func (c *simClient) download(size int64, rate float64) {
	c.s.counts.downloads++
	c.force(Output, size)
	if c.a == nil || c.a.Ending() {
		return
	}
	c.a.Moved(0, size)
	if rate > 0 {
		c.take(size, size, rate)
	}
}

func (c *simClient) take(size, left int64, rate float64) {
	n := min(left, 128<<10)
	c.after(time.Duration(float64(n)/rate*1e9), func() {
		c.free(Output, n)
		c.a.Moved(n, left-n)
		if left > n {
			c.take(size, left-n, rate)
			return
		}
		c.over()
		c.after(time.Duration(c.s.rand.Int64N(int64(5*time.Second))), func() { c.download(size, rate) })
	})
}

// bursts takes nothing for long, and then much at once, so that it looks quick.
func (c *simClient) bursts() {
	const size = 2 << 20
	c.force(Output, size)
	if c.a == nil || c.a.Ending() {
		return
	}
	c.burst(size)
}

func (c *simClient) burst(left int64) {
	c.after(9*time.Second, func() {
		n := min(left, 128<<10)
		c.free(Output, n)
		c.a.Moved(n, left-n)
		if left > n {
			c.burst(left - n)
			return
		}
		c.over()
		c.after(time.Millisecond, c.bursts)
	})
}
