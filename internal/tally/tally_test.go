package tally_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/tally"
)

func newCounter() *tally.Counter {
	c := new(tally.Counter)
	c.Init()
	return c
}

func TestCountsAreExactUnderConcurrency(t *testing.T) {
	c := newCounter()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 1000 {
				s := c.Shard(i)
				s.InFlight.Add(1)
				s.Add(tally.Outcome(n%100), 2, time.Duration(n)*time.Microsecond)
				c.Shard(i + 1).InFlight.Add(-1)
			}
		})
	}
	for range 100 {
		c.Sums() // at any time
	}
	wg.Wait()
	sums := c.Sums()
	var all uint64
	for _, n := range sums.Classes {
		all += n
	}
	if all != 16000 || sums.Latency.Count() != 16000 || sums.InFlight != 0 {
		t.Errorf("got %d requests, %d latencies, %d in flight", all, sums.Latency.Count(), sums.InFlight)
	}
	if sums.Latency.Max != 999*time.Microsecond {
		t.Errorf("got maximum %v", sums.Latency.Max)
	}
}

// No outcome is lost, for any number of outcomes. Outcomes beyond the slots of a shard are counted by class.
func TestOutcomesBeyondMaximum(t *testing.T) {
	c := newCounter()
	var want [tally.Classes]uint64
	for o := range tally.Outcome(400) {
		c.Shard(int(o)).Add(o, uint64(o)+1, time.Duration(o)*time.Millisecond)
		want[o.Class()] += uint64(o) + 1
	}
	sums := c.Sums()
	if sums.Classes != want || sums.Latency.Max != 399*time.Millisecond {
		t.Errorf("got classes %v, want %v; maximum %v", sums.Classes, want, sums.Latency.Max)
	}
	var all, told uint64
	for i, e := range sums.Ended {
		all += e.Latency.Count()
		if i > 0 && e.Outcome <= sums.Ended[i-1].Outcome {
			t.Errorf("got outcome %d after %d, want ascending order", e.Outcome, sums.Ended[i-1].Outcome)
		}
		if e.Outcome&tally.Untold == 0 {
			told++
			if e.Latency.Count() != uint64(e.Outcome)+1 {
				t.Errorf("got %d requests of outcome %d", e.Latency.Count(), e.Outcome)
			}
		}
	}
	if all != sums.Latency.Count() || told < 10 {
		t.Errorf("got %d of %d requests in %d outcomes", all, sums.Latency.Count(), told)
	}
}

func TestQuantilesAgainstSortedDurations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []float64{2, 12, 24} { // in powers of e, around 1 µs
		c := newCounter()
		var plain []time.Duration
		for range 5000 {
			d := time.Duration(1000 * math.Exp(random.Float64()*spread))
			if d > 50*time.Second {
				continue
			}
			plain = append(plain, d)
			c.Shard(0).Add(2, 1, d)
		}
		slices.Sort(plain)
		l := c.Sums().Latency
		for _, q := range []float64{0.0001, 0.5, 0.9, 0.99, 0.999, 1} {
			want := plain[int(math.Ceil(q*float64(len(plain))))-1]
			got := l.Quantile(q)
			if diff := math.Abs(float64(got - want)); diff > float64(want)/4 {
				t.Errorf("spread %v: quantile %v: got %v, want %v", spread, q, got, want)
			}
		}
		if l.Max != plain[len(plain)-1] {
			t.Errorf("got maximum %v, want %v", l.Max, plain[len(plain)-1])
		}
	}
}

func TestExtremeDurations(t *testing.T) {
	c := newCounter()
	if l := c.Sums().Latency; l.Quantile(0.5) != 0 || l.Max != 0 || l.Count() != 0 {
		t.Errorf("empty histogram: got %+v", l)
	}
	c.Shard(0).Add(1, 1, -time.Second) // the clock was set back
	c.Shard(0).Add(1, 1, 0)
	c.Shard(0).Add(1, 2, math.MaxInt64)
	l := c.Sums().Latency
	if l.Count() != 4 || l.Max != math.MaxInt64 || l.Quantile(0.5) > time.Microsecond || l.Quantile(1) != math.MaxInt64 {
		t.Errorf("got %d counts, maximum %v, median %v, last %v", l.Count(), l.Max, l.Quantile(0.5), l.Quantile(1))
	}
}

func TestSince(t *testing.T) {
	c := newCounter()
	c.Shard(0).Add(2, 100, 3*time.Second)
	before := c.Sums().Latency
	c.Shard(0).Add(2, 50, 10*time.Microsecond)
	c.Shard(0).Add(2, 50, 20*time.Millisecond)
	after := c.Sums().Latency
	l := after.Since(&before)
	if l.Count() != 100 || l.Quantile(0.5) > 13*time.Microsecond || l.Quantile(0.99) < 15*time.Millisecond {
		t.Errorf("got %d counts, median %v, p99 %v", l.Count(), l.Quantile(0.5), l.Quantile(0.99))
	}
	if l.Max < 20*time.Millisecond || l.Max > 25*time.Millisecond {
		t.Errorf("got maximum %v", l.Max)
	}
	if none := before.Since(&before); none.Count() != 0 || none.Max != 0 {
		t.Errorf("difference of a state and itself: got %+v", none)
	}
}

func TestBuckets(t *testing.T) {
	c := newCounter()
	empty := c.Sums().Latency
	for below := range empty.Buckets {
		t.Errorf("empty histogram: got a bucket below %v", below)
	}
	durations := []time.Duration{0, 300, 5000, time.Millisecond, time.Second, time.Hour}
	for _, d := range durations {
		c.Shard(0).Add(2, 1, d)
	}
	var last time.Duration
	var sum uint64
	full := c.Sums().Latency
	for below, count := range full.Buckets {
		want := 0
		for _, d := range durations {
			if d < below {
				want++
			}
		}
		if below <= last || count != uint64(want) {
			t.Errorf("bucket below %v, after %v: got %d, want %d", below, last, count, want)
		}
		last, sum = below, count
	}
	if sum != uint64(len(durations)) {
		t.Errorf("got %d in all buckets", sum)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	c := newCounter()
	c.Shard(0)
	if n := testing.AllocsPerRun(100, func() { c.Shard(0).Add(2, 1, time.Millisecond) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	c := newCounter()
	for i := 0; b.Loop(); i++ {
		c.Shard(0).Add(2, 1, time.Duration(i&0xfffff))
	}
}

func BenchmarkSums(b *testing.B) {
	c := newCounter()
	for i := range 2 {
		for d := time.Microsecond; d < time.Second; d = d * 3 / 2 {
			c.Shard(i).Add(2, 1, d)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Sums()
	}
}
