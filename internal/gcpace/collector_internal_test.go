package gcpace

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
	"time"
)

func roomOf(bytes int64) func() int64 { return func() int64 { return bytes } }

func adjustNow() {
	pacer.Lock()
	defer pacer.Unlock()
	adjust()
}

func TestPercentFor(t *testing.T) {
	for _, test := range []struct {
		name       string
		live, goal int64
		want       int
	}{
		{"small heap, much room", 1 << 20, 16 << 20, 400},
		{"small heap, little room", 1 << 20, 6 << 20, 150},
		{"half of the goal", 8 << 20, 16 << 20, 100},
		{"no room", 30 << 20, 16 << 20, minPercent},
		{"nothing live yet", 0, 12 << 20, 300},
		{"a large limit", 100 << 20, 900 << 20, 400},
	} {
		if got := percentFor(test.live, test.goal); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func TestGoalWithoutLimitDoublesLiveHeap(t *testing.T) {
	var l lows
	now := time.Now()
	for i, test := range []struct {
		live  int64
		after time.Duration
		want  int64
	}{
		{1 << 20, 0, easyGoal},
		{50 << 20, lowPart, easyGoal}, // allocated while marking: the collection before had 1 MB
		{50 << 20, 2 * lowPart, easyGoal},
		{50 << 20, lowPart / 2, easyGoal},
		{50 << 20, lowPart, easyGoal},
		{50 << 20, lowPart, easyGoal},
		{50 << 20, lowPart, easyGoal},
		{50 << 20, lowPart, easyGoal},
		{50 << 20, lowPart, easyGoal},
		{60 << 20, 4 * lowPart, 100 << 20}, // they stay live
		{40 << 20, 0, 80 << 20},
	} {
		now = now.Add(test.after)
		if got := goalFor(l.add(test.live, now), 0); got != test.want {
			t.Errorf("collection %d with %d live: goal %d, want %d", i, test.live, got, test.want)
		}
	}
}

func TestGoalOfLargeHeapFillsRoom(t *testing.T) {
	const room = 248 << 20
	for _, test := range []struct{ live, want int64 }{
		{1 << 20, room / 2},
		{100 << 20, 225 << 20}, // it may double, as with Go's own setting, and grow further
		{130 << 20, room - mostBeside},
		{240 << 20, room - mostBeside},
	} {
		if got := goalFor(test.live, room); got != test.want {
			t.Errorf("%d live: goal %d, want %d", test.live, got, test.want)
		}
	}
}

func TestSettingsAreRestoredAfterLastCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	wide, tight := PaceCollector(roomOf(1<<30)), PaceCollector(roomOf(64<<20))
	if got := debug.SetMemoryLimit(-1); got != 63<<20+untouched {
		t.Errorf("the runtime's limit is %d, want the tighter room's", got)
	}
	tight.Stop()
	tight.Stop()
	wide.Stop()
	runtime.GC() // remaining cleanups must do nothing
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is %d after Stop, want 100 as before", got)
	}
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("the memory limit is %d after Stop", got)
	}
}

func TestCollectorsContinueAfterTightestStops(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	easy := PaceCollector(nil)
	defer easy.Stop()
	before := easy.Percent()
	tight := PaceCollector(roomOf(12 << 20))
	if tight.Percent() == before {
		t.Fatalf("GOGC is %d with a limit and without: so the test has no effect", before)
	}
	tight.Stop()
	if got := debug.SetGCPercent(easy.Percent()); got != easy.Percent() {
		t.Errorf("GOGC is %d, want the %d of the one that is left", got, easy.Percent())
	}
	if got := debug.SetMemoryLimit(-1); got < easyLimit {
		t.Errorf("the memory limit is %d, though nobody is left who has one", got)
	}
}

// Without a limit the package still sets one, which does not restrict a heap that Go's own percentage would let grow.
func TestEasyLimitAllowsDefaultGrowth(t *testing.T) {
	for _, live := range []int64{1 << 20, 6 << 20, 30 << 20, 1 << 30, 50 << 30} {
		for _, stacks := range []int64{1 << 19, 80 << 20} {
			now := runtimeState{stacks: stacks, beside: stacks + 4<<20 + live/20}
			goal := live + (live+stacks)*goPercent/100
			if got := easyLimitFor(live, now); got < now.beside+max(goal, minHeap) {
				t.Errorf("%d live, stacks of %d: a limit of %d, less than the %d that Go would take", live, stacks, got, now.beside+goal)
			}
		}
	}
	if got := easyLimitFor(2<<20, runtimeState{stacks: 1 << 20, beside: 8 << 20}); got != easyLimit {
		t.Errorf("2 MB live: a limit of %d, want %d", got, easyLimit)
	}
}

func TestEasyLimitNeedsDefaultGOGC(t *testing.T) {
	t.Setenv("GOGC", "")
	old := debug.SetGCPercent(100)
	defer debug.SetGCPercent(old)
	c := PaceCollector(nil)
	defer c.Stop()
	if got := debug.SetMemoryLimit(-1); got == math.MaxInt64 {
		t.Fatal("no limit; so the test has no effect")
	}
	debug.SetGCPercent(800)
	adjustNow()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("the memory limit is %d beside a GOGC of the program's own", got)
	}
}

func TestEasyLimitFollowsAHeapThatGrows(t *testing.T) {
	t.Setenv("GOGC", "")
	old := debug.SetGCPercent(100)
	defer debug.SetGCPercent(old)
	c := PaceCollector(nil)
	defer c.Stop()
	kept := make([]byte, 64<<20)
	for range remembered {
		runtime.GC()
		afterCollection(struct{}{})
	}
	if got := debug.SetMemoryLimit(-1); got < 128<<20 {
		t.Errorf("the memory limit is %d with 64 MB live for some collections", got)
	}
	runtime.KeepAlive(kept)
}

func TestLimitOfOtherCollectorIsNotUserLimit(t *testing.T) {
	c := PaceCollector(roomOf(64 << 20))
	defer c.Stop()
	if got := FindMemoryLimit(0, fstest.MapFS{}); got.Source != "none" {
		t.Errorf("beside a limit of our own the limit found is %+v, want none", got)
	}
}

func TestUsersPercentStays(t *testing.T) {
	for _, test := range []struct {
		name, env string
		room      func() int64
	}{
		{"in the environment", "50", roomOf(64 << 20)},
		{"by SetGCPercent", "", roomOf(64 << 20)},
		{"in the environment, no limit", "50", nil},
		{"by SetGCPercent, no limit", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOGC", test.env)
			old := debug.SetGCPercent(50)
			defer debug.SetGCPercent(old)
			c := PaceCollector(test.room)
			adjustNow()
			if got := debug.SetGCPercent(50); got != 50 || c.Percent() != 0 {
				t.Errorf("GOGC is %d, chosen %d: want the user's 50", got, c.Percent())
			}
			c.Stop()
			if got := debug.SetGCPercent(50); got != 50 {
				t.Errorf("GOGC is %d after Stop", got)
			}
		})
	}
}

// Settings that the program changes while it serves stay, then and after all servers have stopped.
func TestLaterSettingsOfProgramStay(t *testing.T) {
	t.Setenv("GOGC", "")
	old := debug.SetGCPercent(100)
	defer debug.SetGCPercent(old)
	defer debug.SetMemoryLimit(math.MaxInt64)
	runtime.GC() // frees the memory of other tests
	for _, test := range []struct {
		percent int
		room    func() int64
	}{
		{37, roomOf(64 << 20)},
		{-1, roomOf(64 << 20)},
		{37, nil},
		{-1, nil},
	} {
		percent := test.percent
		c := PaceCollector(test.room)
		if got := c.Percent(); got == 0 || got == 100 {
			t.Fatalf("GOGC chosen: got %d; so the test has no effect", got)
		}
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(1 << 40)
		other := PaceCollector(roomOf(32 << 20))
		adjustNow()
		if got := debug.SetGCPercent(percent); got != percent || c.Percent() != 0 {
			t.Errorf("GOGC is %d, chosen %d: want the program's %d", got, c.Percent(), percent)
		}
		if got := debug.SetMemoryLimit(-1); got != 1<<40 || userLimit() != 1<<40 {
			t.Errorf("the memory limit is %d, want the program's", got)
		}
		other.Stop()
		c.Stop()
		if got := debug.SetGCPercent(100); got != percent {
			t.Errorf("GOGC is %d after Stop, want the program's %d", got, percent)
		}
		if got := debug.SetMemoryLimit(math.MaxInt64); got != 1<<40 {
			t.Errorf("the memory limit is %d after Stop, want the program's", got)
		}
	}
}

func TestQuietProcessReturnsMemory(t *testing.T) {
	c := PaceCollector(nil)
	defer c.Stop()
	const size = 64 << 20
	garbage := make([]byte, size)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.KeepAlive(garbage)
	garbage = nil
	runtime.GC()
	becameQuiet()
	if left := returnable(); left > size/2 {
		t.Errorf("%d bytes could still be returned to the system, of garbage of %d", left, size)
	}
}

func TestQuietProcessDropsFreeBuffers(t *testing.T) {
	c := PaceCollector(nil)
	kept := new([2 * worthReturning]byte)
	asked := 0
	c.OnQuiet(func() int64 {
		asked++
		if kept == nil {
			return 0
		}
		kept = nil
		return 2 * worthReturning
	})
	runtime.GC()
	debug.FreeOSMemory()
	before := readRuntime().live
	becameQuiet()
	if gone := before - readRuntime().live; asked != 1 || gone < worthReturning {
		t.Errorf("asked %d times, %d bytes of %d became free", asked, gone, 2*worthReturning)
	}
	c.Stop()
	becameQuiet()
	if asked != 1 {
		t.Error("a process was asked whose servers have stopped")
	}
}

// Only checks that each saw the next collection show that a percentage lasts for one collection.
func TestSpacing(t *testing.T) {
	var s spacing
	now := time.Now()
	for i, test := range []struct {
		cycles int64
		after  time.Duration
		seen   int
		apart  time.Duration
	}{
		{7, time.Second, 0, 0}, // earlier collections do not count
		{8, 30 * time.Millisecond, 1, 30 * time.Millisecond},
		{9, 20 * time.Millisecond, 2, 20 * time.Millisecond},
		{9, 5 * time.Millisecond, 2, 20 * time.Millisecond}, // a check without a new collection
		{10, 15 * time.Millisecond, 3, 20 * time.Millisecond},
		{14, 20 * time.Millisecond, 0, 5 * time.Millisecond},
		{15, 8 * time.Millisecond, 1, 8 * time.Millisecond},
	} {
		now = now.Add(test.after)
		s.record(test.cycles, now)
		if s.seen != test.seen || i > 0 && s.apart != test.apart {
			t.Errorf("look %d, after collection %d: got %d seen one by one, %v apart, want %d and %v", i, test.cycles, s.seen, s.apart, test.seen, test.apart)
		}
	}
}
