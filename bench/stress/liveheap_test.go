//go:build linux

package stress_test

import (
	"fmt"
	"os/exec"
	"testing"
)

const livePackage = "github.com/dunlinhttp/dunlin/bench/stress/live"

// A service whose live heap is 40 or 50 % of the memory limit is collected about as often as the same handler on net/http with
// Go's own percentage and memory limit. Go's limit does not count the program, which is nearly half of a small limit. There
// Go's limit is reduced by the program, so both use the same amount.
func TestLiveHeap(t *testing.T) {
	if testing.Short() {
		t.Skip("a few seconds of requests")
	}
	const percent = 100
	for _, test := range []struct {
		limit, live int64
		inFull      bool
	}{
		{16 << 20, 50, false}, {16 << 20, 40, true}, {32 << 20, 40, true}, {32 << 20, 50, true},
		{64 << 20, 40, false}, {64 << 20, 50, false}, {256 << 20, 40, true}, {256 << 20, 50, true},
	} {
		if test.inFull && !*full {
			continue
		}
		live := test.limit * test.live / percent
		asGo := []string{"-plain"}
		if test.limit < 64<<20 {
			asGo = append(asGo, "-whole")
		}
		plain := collectionsOf(t, test.limit, live, asGo...)
		// With a large limit there are few collections, so one more or less is allowed.
		bar := either(2*plain+5, plain*6/5+2)
		// On busy processors a collection ends late, and allocations during it make the next one start earlier. The lowest
		// count of several runs is compared, because it shows the pace.
		ours := collectionsOf(t, test.limit, live)
		for again := 0; ours > bar && again < 2; again++ {
			t.Logf("%d MiB, %d %% live: %d collections, once more", test.limit>>20, test.live, ours)
			ours = min(ours, collectionsOf(t, test.limit, live))
		}
		t.Logf("%d MiB, %d %% live: %d collections, plain Go %d (bar: %d)", test.limit>>20, test.live, ours, plain, bar)
		if ours > bar {
			t.Errorf("%d MiB, %d %% live: got %d collections, more than %d: plain Go needs %d", test.limit>>20, test.live, ours, bar, plain)
		}
	}
}

// collectionsOf serves requests in a process of its own and returns how many collections they took.
func collectionsOf(t *testing.T, limit, live int64, more ...string) (n int) {
	t.Helper()
	args := append(more, "-limit", fmt.Sprint(limit), "-live", fmt.Sprint(live),
		"-first", fmt.Sprint(either(15_000, 40_000)), "-requests", fmt.Sprint(either(10_000, 40_000)))
	out, err := exec.CommandContext(t.Context(), build(t, livePackage), args...).Output()
	if err != nil {
		t.Fatalf("live %v: %v", args, err)
	}
	if _, err := fmt.Sscan(string(out), &n); err != nil || n == 0 {
		t.Fatalf("live %v: no collections in %q: %v", args, out, err)
	}
	return n
}
