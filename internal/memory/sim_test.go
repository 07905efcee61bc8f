package memory

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// TestBudgetInSimulation tests the policy of Budget alone, in virtual time: about a thousand clients of every kind share one
// budget, and assertions check the invariants after each step: small is safe, the ceiling holds, the largest pays, no client that makes
// progress starves, and none waits for a slow one. DUNLIN_SEEDS sets the number of runs.
func TestBudgetInSimulation(t *testing.T) {
	for _, bound := range []int64{12 << 20, 256 << 20} {
		t.Run(fmt.Sprintf("%d MiB", bound>>20), func(t *testing.T) {
			t.Parallel()
			sum := simulate(t, 3, 1, 45*time.Second, func(seed uint64) *sim { return newSim(t, seed, bound) })
			if sum.uploads == 0 || sum.ended == 0 || sum.small == 0 || sum.echoes == 0 {
				t.Errorf("nothing was simulated: %+v", sum)
			}
			// Large holders that are quick have priority over slow ones.
			if part := float64(sum.uploads-sum.uploadsRefused) / float64(sum.uploads); part < 0.9 {
				t.Errorf("%.3f of the quick uploads were served", part)
			}
		})
	}
}

// Uploads are echoed entirely, beside clients that do not read their responses and heads that never end. No response that its
// client reads is cut off, however little memory there is: an upload without room is refused before its response begins.
func TestMovingAnswersInSimulation(t *testing.T) {
	sum := simulate(t, 10, 2, 30*time.Second, func(seed uint64) *sim {
		s := emptySim(t, seed, 3<<20)
		s.burst(32, "echo", func(c *simClient) { c.echo(1<<20, 1<<20, 20<<20) })
		s.burst(300, "never", func(c *simClient) { c.neverReads(90 << 10) })
		s.burst(300, "head", func(c *simClient) { c.slowHead(3 << 10) })
		s.burst(100, "small", (*simClient).small)
		return s
	})
	if sum.echoesCut > 0 {
		t.Errorf("%d answers were cut off", sum.echoesCut)
	}
	if part := float64(sum.echoes-sum.echoesRefused) / float64(sum.echoes); part < 0.5 {
		t.Errorf("%.3f of the uploads were served", part)
	}
}

// Bodies of unknown length arrive at good rates beside slow ones. Any two of them would fill the budget; most arrive entirely.
func TestGrowingBodiesInSimulation(t *testing.T) {
	sum := simulate(t, 10, 2, 30*time.Second, func(seed uint64) *sim {
		s := emptySim(t, seed, 4<<20)
		s.burst(16, "chunked", func(c *simClient) { c.chunked(3<<19, 2<<20, 20<<20) })
		s.burst(10, "body chunked", func(c *simClient) { c.slowBody(100<<10, -1, 300) })
		return s
	})
	if part := float64(sum.chunked-sum.chunkedRefused) / float64(sum.chunked); part < 0.5 {
		t.Errorf("%.3f of the bodies were read", part)
	}
}

// Connections send large messages at a good rate, one after the other, and pass the queue, since they cannot wait. Together they
// always hold so much memory that large uploads hardly ever fit. Most uploads are served nevertheless, and few messages are
// refused for them.
func TestMessagesBesideUploadsInSimulation(t *testing.T) {
	sum := simulate(t, 3, 1, 60*time.Second, func(seed uint64) *sim {
		s := emptySim(t, seed, 16<<20)
		for range 72 {
			s.add("message", 0, func(c *simClient) { c.message(0, 256<<10, 10<<20) })
		}
		for range 4 {
			s.add("beside", time.Second, func(c *simClient) { c.echo(6<<20, 10<<20, 20<<20) })
		}
		return s
	})
	if part := float64(sum.echoes-sum.echoesRefused) / float64(sum.echoes); part < 0.9 {
		t.Errorf("%.3f of %d uploads were served", part, sum.echoes)
	}
	if part := float64(sum.messages-sum.messagesRefused) / float64(sum.messages); part < 0.85 {
		t.Errorf("%.3f of %d messages were received", part, sum.messages)
	}
}

// simulate runs the simulations that start makes, each for the given time, and returns the sum of their counts. Short tests and
// those of race builds run fewer.
func simulate(t *testing.T, runs, short int, each time.Duration, start func(seed uint64) *sim) (sum simCounts) {
	t.Helper()
	if testing.Short() || invariants.Enabled {
		runs = short
	}
	if n, err := strconv.Atoi(os.Getenv("DUNLIN_SEEDS")); err == nil {
		runs = n
	}
	for seed := range runs {
		s := start(uint64(seed))
		s.run(each)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		sum.add(&s.counts)
	}
	t.Logf("%+v", sum)
	return sum
}

// simCounts counts the events of a simulation.
type simCounts struct {
	small, ended, endedWell        int // requests of small holders; ended ones; ended ones of honest clients
	uploads, uploadsRefused, waits int // of quick clients
	downloads, downloadsCut        int
	echoes, echoesRefused          int   // uploads that are echoed
	echoesCut                      int   // in the middle of the answer
	chunked, chunkedRefused        int   // bodies of unknown length
	messages, messagesRefused      int   // that pass the queue
	beyond                         int64 // the most memory held beyond the bound, by holders that are being ended
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
	c.echoes += o.echoes
	c.echoesRefused += o.echoesRefused
	c.echoesCut += o.echoesCut
	c.chunked += o.chunked
	c.chunkedRefused += o.chunkedRefused
	c.messages += o.messages
	c.messagesRefused += o.messagesRefused
	c.beyond = max(c.beyond, o.beyond)
}

// A sim is one run.
type sim struct {
	t       *testing.T
	rand    *rand.Rand
	now     int64
	queue   simQueue
	seq     int
	h       *Budget
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
	round int  // identifies events of an earlier round
	begun bool // the response has begun
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

func emptySim(t *testing.T, seed uint64, bound int64) *sim {
	s := &sim{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: 1, h: New(bound)}
	s.h.Now = func() int64 { return s.now }
	return s
}

// burst adds up to the given number of clients, each with its own address.
func (s *sim) burst(many int, kind string, run func(c *simClient)) {
	s.crowdFrom(many, kind, run, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) })
}

func (s *sim) crowdFrom(many int, kind string, run func(c *simClient), from func(i int) netip.Addr) {
	for range s.rand.IntN(many + 1) {
		c := s.add(kind, time.Duration(s.rand.Int64N(int64(20*time.Second))), run)
		c.from = from(len(s.clients))
	}
}

// add adds a client that begins after a time.
func (s *sim) add(kind string, after time.Duration, run func(c *simClient)) *simClient {
	c := &simClient{s: s, kind: kind}
	s.clients = append(s.clients, c)
	s.after(after, func() { run(c) })
	return c
}

func newSim(t *testing.T, seed uint64, bound int64) *sim {
	s := emptySim(t, seed, bound)
	enemy := netip.AddrFrom4([4]byte{192, 0, 2, 1})
	one := func(int) netip.Addr { return enemy }
	s.burst(300, "small", (*simClient).small)
	s.burst(60, "upload", (*simClient).upload)
	s.burst(60, "echo", func(c *simClient) { c.echo(1<<20, 1<<20, 20<<20) })
	s.burst(200, "download", func(c *simClient) { c.download(1<<20, 12<<10) })
	s.burst(100, "download quick", func(c *simClient) { c.download(1<<20, 10<<20) })
	s.burst(100, "download silent", func(c *simClient) { c.download(300<<10, 0) })
	s.burst(200, "body slow", func(c *simClient) { c.slowBody(2<<20, 4<<20, 300) })
	s.burst(100, "body nearly", func(c *simClient) { c.slowBody(4<<20-1000, 4<<20, 20) })
	s.burst(100, "body chunked", func(c *simClient) { c.slowBody(1<<20, -1, 300) })
	s.burst(60, "bursting", (*simClient).bursts)
	s.burst(30, "chunked", func(c *simClient) { c.chunked(1<<20, 4<<20+1, 10<<20) })
	s.burst(10, "huge", func(c *simClient) { c.download(bound+bound/2, 1<<20) })
	switch s.rand.IntN(3) {
	case 0: // one client, many connections, each within its fair share
		s.crowdFrom(1000, "burst small", func(c *simClient) { c.slowBody(60<<10, 64<<10, 1) }, one)
	case 1: // ... or above it
		s.crowdFrom(500, "burst large", func(c *simClient) { c.slowBody(1<<20, 4<<20, 100<<10) }, one)
	}
	return s
}

func (s *sim) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, simEvent{s.now + int64(d), s.seq, do})
}

// after calls do after d, if the client is still in the same round then.
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
	b := s.h
	if b.Held() != 0 || b.large.Load() != 0 || b.Ending() != 0 || b.Count() != 0 || b.giant.Load() != nil || len(b.queue) != 0 || b.Waiting() != 0 || len(b.all) != 0 || len(b.addresses) != 0 {
		s.t.Errorf("left behind: got %d held, %d large, %d ending, by %d of %d accounts, %d waiting", b.Held(), b.large.Load(), b.Ending(), b.Count(), len(b.all), len(b.queue))
	}
}

// check asserts that the ceiling holds, and that all sums are right.
func (s *sim) check() {
	b := s.h
	if over := b.over(0); over > b.slack() && s.endable(nil) {
		s.t.Errorf("%d held, %d ending, %d spared, of %d, and a large holder could be ended", b.Held(), b.Ending(), b.spared(), b.Bound())
	}
	s.counts.beyond = max(s.counts.beyond, b.Held()-b.Bound()-b.spared())
	if s.seq%64 != 0 {
		return
	}
	var held, ending, large int64
	count := 0
	for _, c := range s.clients {
		if c.a == nil || c.a.Held() == 0 {
			continue
		}
		n := c.a.Held()
		held += n
		count++
		if c.a.Evicted() {
			ending += n
		} else {
			large += largeBytes(n)
		}
	}
	if held != b.Held() || ending != b.Ending() || large != b.large.Load() || count != b.Count() {
		s.t.Errorf("%d held by %d, %d ending, %d large; counted are %d by %d, %d, %d", held, count, ending, large, b.Held(), b.Count(), b.Ending(), b.large.Load())
	}
}

// endable reports whether a client other than but holds more than Small and may be ended.
func (s *sim) endable(but *simClient) bool { return s.endableOf(but, ranks) }

// endableOf is endable for the ranks below one.
func (s *sim) endableOf(but *simClient, rank int) bool {
	for _, c := range s.clients {
		if c != but && c.a != nil {
			if x, ok := c.a.candidate(s.now); ok && x.rank < rank {
				return true
			}
		}
	}
	return false
}

// waits asserts that a request which has to wait does not wait for a slow client.
func (c *simClient) waits() {
	c.s.counts.waits++
	b := c.s.h
	if b.first(c.s.now) != c.a.wait || c.s.now-b.nextAt < 2*listLife {
		return
	}
	if b.need(c.a, c.a.wait.want, nil, true) > 0 && c.s.endableOf(c, sending) {
		c.s.t.Errorf("%s waits, though a slow client could be ended", c.kind)
	}
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

// free releases part of the memory that is held.
func (c *simClient) free(u Use, n int64) {
	c.uses[u] -= n
	c.a.Release(u, n)
}

// over ends the connection.
func (c *simClient) over() {
	c.round++
	c.begun = false
	if c.a == nil {
		return
	}
	c.a.Unwait()
	c.a.EndRequest()
	c.uses[Body] = 0
	c.a.ReleaseReservation()
	for u, n := range c.uses {
		c.free(Use(u), n)
		c.uses[u] = 0
	}
	if !c.a.CloseIdle() {
		c.a.Close()
	}
	c.a = nil
}

// simCandidate is candidate for an account that has just been marked.
func simCandidate(a *Account, now int64) (candidate, bool) {
	a.ending = false
	defer func() { a.ending = true }()
	return a.candidate(now)
}

func (c *simClient) RemoteAddr() netip.AddrPort { return netip.AddrPortFrom(c.from, 1) }

// End asserts that the policy ended the right client.
func (c *simClient) End(a *Account) {
	s := c.s
	if a != c.a || !a.ending {
		s.t.Fatalf("%s: ended for another", c.kind)
	}
	s.counts.ended++
	me, _ := simCandidate(a, s.now)
	if a.wait == nil && a.Held() <= Small && s.endable(c) { // a request that waits is not small
		s.t.Errorf("%s was ended, which holds %d, while others hold more than %d", c.kind, a.Held(), Small)
	}
	if a.working && a.wait == nil && s.asking != c {
		s.t.Errorf("%s was ended while the server works for it", c.kind)
	}
	// The largest pays: none had a lower rank, or a higher cost, when the list was made. A request that waits may pay for the
	// first of the queue instead.
	if a.wait == nil && s.h.nextAt == s.now {
		for _, o := range s.clients {
			if o.a == nil || o == s.asking {
				continue
			}
			if x, ok := o.a.candidate(s.now); ok && compareCandidates(x, me) > 0 {
				s.t.Errorf("%s was ended (rank %d, cost %.0f) before %s (rank %d, cost %.0f)", c.kind, me.rank, me.cost, o.kind, x.rank, x.cost)
			}
		}
	}
	switch c.kind {
	case "download quick", "small", "upload":
		s.counts.endedWell++
	case "download":
		s.counts.downloadsCut++
	case "chunked":
		s.counts.chunkedRefused++
		s.after(time.Second, func() { c.chunked(1<<20, 4<<20+1, 10<<20) })
	case "message":
		s.counts.messagesRefused++
		s.after(time.Second, func() { c.message(0, 256<<10, 10<<20) })
	case "beside":
		s.counts.echoesRefused++
		s.after(time.Second, func() { c.echo(6<<20, 10<<20, 20<<20) })
	case "echo":
		if c.begun {
			s.counts.echoesCut++
		} else {
			s.counts.echoesRefused++
			s.after(time.Second, func() { c.echo(1<<20, 1<<20, 20<<20) })
		}
	}
	// Its memory is released when its goroutine has noticed the end.
	c.round++
	s.after(time.Duration(s.rand.Int64N(int64(50*time.Millisecond))), c.over)
}
