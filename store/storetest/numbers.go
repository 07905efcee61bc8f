package storetest

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

func testIncrement(t *testing.T, b *bench) {
	for i, step := range []struct{ by, want int64 }{{1, 1}, {41, 42}, {-2, 40}, {0, 40}, {1 << 52, 40 + 1<<52}, {-40 - 1<<52, 0}, {-7, -7}} {
		n, err := store.Increment(ctx, b, b.key("n"), step.by, long)
		if err != nil || n != step.want {
			t.Fatalf("step %d: Increment(%d) = %d, %v, want %d", i, step.by, n, err, step.want)
		}
	}
}

func testIncrementAtOnce(t *testing.T, b *bench) {
	atOnce(t, 1000, func(int) error { _, err := store.Increment(ctx, b, b.key("n"), 1, long); return err })
	if n, err := store.Increment(ctx, b, b.key("n"), 1, long); err != nil || n != 1001 {
		t.Errorf("after 1000 increments: %d, %v", n-1, err)
	}
}

func testNumbers(t *testing.T, b *bench) {
	key := b.key("k")
	b.mustSet(t, key, "value", store.VersionAbsent, long)
	if n, err := store.Increment(ctx, b, key, 3, long); err != nil || n != 3 {
		t.Fatalf("Increment of a key that has a value, too: %d, %v", n, err)
	}
	b.mustBe(t, key, "value")
	short := b.key("short")
	if _, err := store.Increment(ctx, b, short, 5, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "expiry of a number", func() bool {
		n, err := store.Increment(ctx, b, short, 0, long)
		return err == nil && n == 0
	})
}

// The first increment sets the time to live; later ones do not change it.
func testNumberTime(t *testing.T, b *bench) {
	key := b.key("n")
	if _, err := store.Increment(ctx, b, key, 1, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a number that is changed all the time begins anew", func() bool {
		n, err := store.Increment(ctx, b, key, 1, long)
		return err == nil && n == 1
	})
	if n, err := store.Increment(ctx, b, key, 1, time.Millisecond); err != nil || n != 2 {
		t.Errorf("a number that has begun anew: %d, %v, want 2", n, err)
	}
}

// mix covers every outcome of a script: results of both signs, and numbers that are kept, renewed, left and removed.
var mix = &store.Script{
	Name: "mix",
	Go: func(_, state int64, a *store.Args) (int64, time.Duration, int64) {
		keep := time.Duration(a[1]) * time.Microsecond
		if a[1] < 0 {
			keep = store.KeepTTL
		}
		return state*2 + a[0], keep, a[2] - state
	},
	Lua: `result = a3 - state
state = state * 2 + a1
keep = a2`,
}

func testScript(t *testing.T, b *bench) {
	const hour = 3600 * 1000 * 1000
	for i, step := range []struct {
		args store.Args
		want int64
	}{
		{store.Args{5, hour, 1}, 1},           // 0 → 5
		{store.Args{1, -1, 1}, -4},            // → 11
		{store.Args{0, hour, -9}, -20},        // → 22
		{store.Args{-44, hour, 0}, -22},       // → 0, removed
		{store.Args{7, -1, 3}, 3},             // no time to live to keep: none
		{store.Args{7, -1, 3}, 3},             // none
		{store.Args{1 << 51, hour, 0}, 0},     // large numbers are exact
		{store.Args{-1, hour, 0}, -(1 << 51)}, // → 2^52-1
		{store.Args{1, 0, 0}, 1 - 1<<52},      // time to live of 0: none
		{store.Args{0, hour, 4}, 4},           // none
	} {
		n, err := b.Run(ctx, b.key("n"), mix, step.args)
		if err != nil || n != step.want {
			t.Fatalf("step %d: Run(%v) = %d, %v, want %d", i, step.args, n, err, step.want)
		}
	}
	clock := &store.Script{
		Name: "clock",
		Go:   func(now, _ int64, _ *store.Args) (int64, time.Duration, int64) { return 0, 0, now },
		Lua:  "result = now",
	}
	n, err := b.Run(ctx, b.key("clock"), clock, store.Args{})
	if err != nil || n < time.Now().Add(-time.Hour).UnixMicro() || n > time.Now().Add(time.Hour).UnixMicro() {
		t.Errorf("now is %d, %v, want microseconds since 1970", n, err)
	}
}
