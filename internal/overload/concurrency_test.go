package overload_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// settled returns the final limit if the limit is always used fully, and each of n concurrent calls takes took(n).
func settled(g *overload.Concurrency, took func(n int) time.Duration) int {
	for range 500_000 {
		n := g.Limit()
		g.Note(took(n), n)
	}
	return g.Limit()
}

func TestConcurrency(t *testing.T) {
	sleeping := func(int) time.Duration { return 10 * ms }
	contended := func(n int) time.Duration { return 10 * ms * time.Duration(max(n, 20)) / 20 } // 20 at a time
	if n := settled(overload.NewConcurrency(4, 1000), sleeping); n != 1000 {
		t.Errorf("what only waits comes to %d, want all of 1000", n)
	}
	g := overload.NewConcurrency(4, 100_000)
	// It begins idle, and so learns the usual duration.
	for range 5000 {
		g.Note(contended(1), 1)
	}
	if n := settled(g, contended); n < 20 || n > 200 {
		t.Errorf("what is done 20 at a time comes to %d", n)
	}
}

// Calls that have become slow for good are not throttled for ever, however few there are.
func TestConcurrencyLearns(t *testing.T) {
	g := overload.NewConcurrency(4, 500)
	settled(g, func(int) time.Duration { return ms })
	if n := settled(g, func(int) time.Duration { return 50 * ms }); n != 500 {
		t.Errorf("what waits for longer than it used to comes to %d, want all of 500", n)
	}
}

func TestConcurrencyStaysInBounds(t *testing.T) {
	g := overload.NewConcurrency(8, 64)
	slower := 1 * ms
	for range 10_000 {
		slower += ms
		g.Note(slower, g.Limit())
		if n := g.Limit(); n < 8 || n > 64 {
			t.Fatalf("the limit is %d", n)
		}
	}
	if n := overload.NewConcurrency(8, 3).Limit(); n != 3 {
		t.Errorf("the least is above the most: got %d", n)
	}
	idle := overload.NewConcurrency(4, 1000)
	before := idle.Limit()
	for range 1000 {
		idle.Note(ms, 1)
	}
	if n := idle.Limit(); n != before {
		t.Errorf("a bound that is not used moved from %d to %d", before, n)
	}
}
