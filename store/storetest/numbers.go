package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/store"
)

func testAdd(t *testing.T, b *bench) {
	for i, step := range []struct{ by, want int64 }{{1, 1}, {41, 42}, {-2, 40}, {0, 40}, {1 << 52, 40 + 1<<52}, {-40 - 1<<52, 0}, {-7, -7}} {
		n, err := b.Add(ctx, b.key("n"), step.by, long)
		if err != nil || n != step.want {
			t.Fatalf("step %d: Add(%d) = %d, %v, want %d", i, step.by, n, err, step.want)
		}
	}
}

func testAddAtOnce(t *testing.T, b *bench) {
	atOnce(t, 1000, func(int) error { _, err := b.Add(ctx, b.key("n"), 1, long); return err })
	if n, err := b.Add(ctx, b.key("n"), 1, long); err != nil || n != 1001 {
		t.Errorf("after 1000 calls of Add: %d, %v", n-1, err)
	}
}

func testNumbers(t *testing.T, b *bench) {
	key := b.key("k")
	b.mustSet(t, key, "value", store.VersionAbsent, long)
	if n, err := b.Add(ctx, key, 3, long); err != nil || n != 3 {
		t.Fatalf("Add of a key that has a value, too: %d, %v", n, err)
	}
	b.mustBe(t, key, "value")
	short := b.key("short")
	if _, err := b.Add(ctx, short, 5, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "expiry of a number", func() bool {
		n, err := b.Add(ctx, short, 0, long)
		return err == nil && n == 0
	})
}

// The first Add sets the time to live; later calls do not change it.
func testNumberTime(t *testing.T, b *bench) {
	key := b.key("n")
	if _, err := b.Add(ctx, key, 1, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a frequently changed number expires", func() bool {
		n, err := b.Add(ctx, key, 1, long)
		return err == nil && n == 1
	})
	if n, err := b.Add(ctx, key, 1, time.Millisecond); err != nil || n != 2 {
		t.Errorf("number after its expiry: got %d, error %v, want 2", n, err)
	}
}

// A store may decide about the requests of a rate limit in one step, as gcra.Rate.TakeStored does.
func testQuota(t *testing.T, b *bench) {
	st, ok := b.Store.(gcra.Store)
	if !ok {
		return // middleware.RateLimit uses a value of such a store in place of TakeQuota
	}
	const hour = 3600 * 1000 * 1000
	take := func(key string, rate gcra.Rate) gcra.Verdict {
		v, err := st.TakeQuota(ctx, b.key(key), rate)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	three := gcra.Rate{Interval: hour, Tolerance: 3 * hour}
	for i := range int64(5) { // less than an hour passes meanwhile
		v, admitted := take("hours", three), i < 3
		used := min(i+1, 3)
		if v.Admitted != admitted || v.Used > used*hour || v.Used <= (used-1)*hour || (v.Wait > 0) == admitted || v.Wait > hour {
			t.Fatalf("request %d of 3 at once, one an hour: %+v", i, v)
		}
	}
	if v := take("hours", gcra.Rate{Interval: hour, Tolerance: hour}); v.Admitted || v.Used != hour || v.Wait != hour {
		t.Errorf("after the limit was lowered: %+v, want one hour that is used", v)
	}
	if v := take("hours", three); !v.Admitted || v.Used <= hour || v.Used > 2*hour {
		t.Errorf("after the limit was raised again: %+v, want the second hour", v)
	}
	brief := gcra.Rate{Interval: 5000, Tolerance: 5000}
	if v := take("short", brief); v != (gcra.Verdict{Admitted: true, Used: 5000}) {
		t.Errorf("the first request of a key: %+v", v)
	}
	eventually(t, "the quota has returned", func() bool { return take("short", brief).Admitted })
	var admitted atomic.Int64
	atOnce(t, 200, func(int) error {
		v, err := st.TakeQuota(ctx, b.key("at once"), gcra.Rate{Interval: hour, Tolerance: 50 * hour})
		if v.Admitted {
			admitted.Add(1)
		}
		return err
	})
	if n := admitted.Load(); n != 50 {
		t.Errorf("of 200 requests at once %d were admitted, want 50", n)
	}
}
