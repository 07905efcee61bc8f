package middleware

import (
	"math/rand/v2"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/gcra"
)

// What is left is what a division says.
func TestLeft(t *testing.T) {
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
				t.Fatalf("%+v, %d used: %d left, want %d", r, used, got, want)
			}
		}
	}
}
