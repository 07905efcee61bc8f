package gcra_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/gcra"
)

func TestRate(t *testing.T) {
	r := gcra.Rate{Interval: 100, Tolerance: 300} // a burst of three, then one every 100
	tat := int64(0)
	for i, step := range []struct {
		now       int64
		admitted  bool
		remaining int64
		wait      int64
	}{
		{1000, true, 2, 0},
		{1000, true, 1, 0},
		{1000, true, 0, 0},
		{1000, false, 0, 100},
		{1099, false, 0, 1},
		{1100, true, 0, 0},
		{1250, true, 0, 0}, // 150 were replenished, 100 were used
		{1290, false, 0, 10},
		{9000, true, 2, 0},
	} {
		var v gcra.Verdict
		tat, v = r.Take(tat, step.now)
		if v.Admitted != step.admitted || r.Remaining(v.Used) != step.remaining || v.Wait != step.wait {
			t.Fatalf("step %d: got %+v with %d remaining, want %+v", i, v, r.Remaining(v.Used), step)
		}
	}
}

// The table gives the same verdicts as a map of TATs, for any input, while there is room.
func TestTableAgainstMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		rate := gcra.Rate{Interval: 10, Tolerance: 10 * (1 + random.Int64N(5))}
		table, twin := gcra.NewTable(rate, 1_000_000), map[uint64]int64{}
		keys := make([]uint64, 1+random.IntN(3000))
		for i := range keys {
			keys[i] = random.Uint64() & (1<<58 | 1<<40 - 1) // in two shards
			if i%3 == 0 {
				keys[i] &= 7 | 1<<58 | 0xff<<20 // many with the same home slot
			}
		}
		now := int64(1)
		for range 20_000 {
			now += random.Int64N(3) * random.Int64N(20)
			key := keys[random.IntN(len(keys))]
			switch random.IntN(10) {
			case 0:
				if _, want := rate.Take(twin[max(key, 1)], now); table.Peek(key, now) != want {
					t.Fatalf("seed %d: Look(%x, %d) = %+v, want %+v", seed, key, now, table.Peek(key, now), want)
				}
			case 1:
				used := random.Int64N(rate.Tolerance + 1)
				table.Record(key, now, used)
				twin[max(key, 1)] = now + used
			default:
				tat, want := rate.Take(twin[max(key, 1)], now)
				twin[max(key, 1)] = tat
				if got := table.Take(key, now); got != want {
					t.Fatalf("seed %d: Take(%x, %d) = %+v, want %+v", seed, key, now, got, want)
				}
			}
		}
	}
}

// At the bound, new keys are still judged, the keys that have used most are remembered, and memory does not grow.
func TestTableIsBounded(t *testing.T) {
	const keys = 10_000
	rate := gcra.Rate{Interval: 1_000_000, Tolerance: 5_000_000}
	table := gcra.NewTable(rate, keys)
	heavy := make([]uint64, 100)
	for i := range heavy {
		heavy[i] = rand.Uint64()
		for range 5 {
			table.Take(heavy[i], 1)
		}
	}
	for range 200_000 {
		if v := table.Take(rand.Uint64(), 2); !v.Admitted {
			t.Fatalf("first request of a key: refused: %+v", v)
		}
	}
	for _, key := range heavy {
		if v := table.Take(key, 3); v.Admitted {
			t.Error("a key without remaining quota was evicted")
		}
	}
	if n := table.Bytes(); n > 64*keys {
		t.Errorf("got a table of %d bytes, want at most 64 for each of %d keys", n, keys)
	}
}

// Many keys that are added and expire do not make the table grow, and a key takes at most 64 bytes.
func TestTableSize(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rate := gcra.Rate{Interval: 100, Tolerance: 100}
	for _, keys := range []int{100_000, 300_000} {
		table := gcra.NewTable(rate, 1<<20)
		for i := range 20 {
			for range keys / 10 { // one tenth of the keys is alive at a time
				table.Take(random.Uint64(), int64(1+i*100))
			}
		}
		if n := table.Bytes(); n > int64(keys/10*64) {
			t.Errorf("%d live keys: got a table of %d bytes, want at most 64 per key", keys/10, n)
		}
		table = gcra.NewTable(rate, 1<<20)
		for range keys {
			table.Take(random.Uint64(), 1)
		}
		if n := table.Bytes(); n > int64(keys*64) {
			t.Errorf("%d keys: got a table of %d bytes, want at most 64 per key", keys, n)
		}
	}
}

func TestTableConcurrent(t *testing.T) {
	rate := gcra.Rate{Interval: 1, Tolerance: 1000}
	table := gcra.NewTable(rate, 1000)
	var wg sync.WaitGroup
	admitted := make([]int, 8)
	for w := range admitted {
		wg.Go(func() {
			for range 1000 {
				if table.Take(42, 1).Admitted {
					admitted[w]++
				}
			}
		})
	}
	wg.Wait()
	all := 0
	for _, n := range admitted {
		all += n
	}
	if all != 1000 {
		t.Errorf("got %d admitted requests, want 1000", all)
	}
}

func BenchmarkTake(b *testing.B) {
	table := gcra.NewTable(gcra.Rate{Interval: 1, Tolerance: 1 << 40}, 1<<20)
	hashes := make([]uint64, 1<<12)
	for i := range hashes {
		hashes[i] = rand.Uint64()
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		table.Take(hashes[i%len(hashes)], 1)
	}
}
