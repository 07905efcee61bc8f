package middleware

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/gcra"
)

// The remaining number equals the result of a division.
func TestRateLimitRemaining(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 8))
	for range 100_000 {
		r := gcra.Rate{Interval: 1 + random.Int64N(1<<random.IntN(63))}
		r.Tolerance = min(r.Interval, 1<<62/r.Interval) * r.Interval
		if n := random.IntN(3); n > 0 {
			r.Tolerance = r.Interval * (1 + random.Int64N(max((1<<62)/r.Interval, 1)))
		}
		f := rateFields{rate: r, inverse: inverseOf(r.Interval)}
		for _, used := range []int64{0, 1, r.Interval - 1, r.Interval, r.Tolerance - 1, r.Tolerance, r.Tolerance + 1, random.Int64N(r.Tolerance) + 1} {
			if got, want := f.left(used), r.Remaining(used); got != want {
				t.Fatalf("%+v, %d used: got %d left, want %d", r, used, got, want)
			}
		}
	}
}

// The shortcut for a nearly unused limit gives the same fields as the full computation.
func TestNearlyUnusedLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	for range 5000 {
		rate := RateLimitConfig{Limit: 1 + random.IntN(1<<random.IntN(30)), Burst: 1 + random.IntN(1<<random.IntN(30)), Window: time.Hour, Name: "default", MaxKeys: 1}
		if rate.validate() != nil {
			continue
		}
		interval := int64(rate.Window) / int64(rate.Limit)
		f := newRateFields(&rate, gcra.Rate{Interval: interval, Tolerance: interval * int64(rate.Burst)})
		end := interval + int64(f.little)
		for _, used := range []int64{0, interval - 1, interval, interval + 1, end - 1, end, end + 1, f.rate.Tolerance, random.Int64N(f.rate.Tolerance) + 1} {
			if got, want := f.admit(gcra.Verdict{Admitted: true, Used: used}), f.find(used); got.left != want.left || got.seconds != want.seconds {
				t.Fatalf("limit %d in %v, burst %d, %d used: got %d left and %d s, want %d and %d", rate.Limit, rate.Window, rate.Burst, used, got.left, got.seconds, want.left, want.seconds)
			}
		}
		if end < f.rate.Tolerance && f.admit(gcra.Verdict{Admitted: true, Used: end + 1}) == f.least {
			t.Fatalf("%+v: the shortcut also applies above %d", rate, end)
		}
	}
}
