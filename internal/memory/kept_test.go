package memory

import (
	"sync"
	"sync/atomic"
	"testing"
)

// hoard is a cache of pieces of ten bytes.
type hoard struct {
	kept *Kept
	n    atomic.Int64
}

func newHoard(b *Budget) *hoard {
	h := new(hoard)
	h.kept = b.Keep(h.drop)
	return h
}

func (h *hoard) add() bool {
	if !h.kept.Reserve(10) {
		return false
	}
	h.n.Add(1)
	return true
}

func (h *hoard) drop(n int64) {
	for ; n > 0; n -= 10 {
		have := h.n.Load()
		if have == 0 {
			return
		}
		if h.n.CompareAndSwap(have, have-1) {
			h.kept.Release(10)
		}
	}
}

// Cached memory takes no more than three quarters of the budget, and is evicted before a request is refused.
func TestCachesAreDroppedFirst(t *testing.T) {
	b := New(1000)
	first, second := newHoard(b), newHoard(b)
	for first.add() {
		second.add()
	}
	if kept := b.HeldFor(InCache); kept != 750 {
		t.Fatalf("%d bytes are kept of 1000, want 750", kept)
	}
	for i, want := range []int64{750, 750, 700, 600, 500, 400, 300, 200, 100, 0} {
		if !b.reserve(Output, 100, 0) {
			t.Fatalf("the request %d for 100 bytes is refused, though %d bytes are kept", i, b.HeldFor(InCache))
		}
		if kept := b.HeldFor(InCache); kept != want {
			t.Errorf("after %d bytes of output %d are kept, want %d", 100*(i+1), kept, want)
		}
	}
	if b.reserve(Output, 1, 0) || first.add() {
		t.Error("a full budget gives more")
	}
	b.force(Output, -1000)
	if b.Held() != 0 || !first.add() {
		t.Errorf("%d bytes are held by nobody", b.Held())
	}
}

func TestKeptWithoutBound(t *testing.T) {
	b := New(0)
	h := newHoard(b)
	for range 1000 {
		if !h.add() {
			t.Fatal("a budget without a bound refuses")
		}
	}
	b.SetBound(1000)
	if !b.reserve(Output, 900, 0) || b.Held() > 1000 {
		t.Errorf("%d bytes are held of 1000", b.Held())
	}
}

func TestKeptAtOnce(t *testing.T) {
	b := New(10_000)
	h := newHoard(b)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				h.add()
			}
		})
		wg.Go(func() {
			for range 5000 {
				if !b.reserve(Output, 100, 0) {
					t.Error("400 bytes at most are refused of 10000")
				}
				b.force(Output, -100)
			}
		})
	}
	wg.Wait()
	if b.Held() != h.n.Load()*10 || b.Held() > 10_000 {
		t.Errorf("%d bytes are held, for %d pieces", b.Held(), h.n.Load())
	}
}
