package admission

import (
	"fmt"
	"sync/atomic"
)

// A Use is what memory of a budget is held for.
type Use uint8

const (
	Input     Use = iota // received and not complete: heads, small bodies
	Body                 // request bodies read in whole by an action
	Output               // answers that clients have not taken
	Stream               // buffers of answers that are being produced
	Queued               // complete requests that wait for a goroutine
	Handshake            // TLS handshakes under way
	InCache              // what can be made again, see Kept
	uses
)

// String returns the use's name as statistics show it.
func (u Use) String() string {
	return [...]string{"input", "body", "output", "stream", "queued", "handshake", "cache"}[u]
}

// Uses yields every use.
func Uses(yield func(Use) bool) {
	for u := range uses {
		if !yield(u) {
			return
		}
	}
}

// A Budget counts the memory that is held for clients, in bytes, by use. It is
// asked for what is unfinished only: a request that is answered in one go holds
// nothing. What is counted is the capacity of buffers, not how full they are. All
// methods are safe for concurrent use; a nil Budget has no bound and counts
// nothing, the zero Budget counts.
//
// Invariant: held is the sum over all uses, and each of them is ≥ 0.
type Budget struct {
	bound   atomic.Int64
	held    atomic.Int64
	peak    atomic.Int64
	refused atomic.Uint64
	by      [uses]atomic.Int64
	keeps   keeps
}

// NewBudget returns a budget of bound bytes; 0 is no bound.
func NewBudget(bound int64) *Budget {
	b := new(Budget)
	b.SetBound(bound)
	return b
}

// SetBound changes the bound, 0 for none. What is held stays held.
func (b *Budget) SetBound(bound int64) { b.bound.Store(bound) }

// Reserve takes n bytes for a use, before they are filled. It reports false, and
// takes nothing, when the budget has no room for them.
func (b *Budget) Reserve(u Use, n int64) bool {
	if b == nil {
		return true
	}
	if !b.reserve(u, n, 0) {
		b.refused.Add(1)
		return false
	}
	return true
}

// reserve is Reserve that allows so many bytes beyond the bound and does not count.
func (b *Budget) reserve(u Use, n, beyond int64) bool {
	for {
		held, bound := b.held.Load(), b.bound.Load()
		if bound > 0 && held+n > bound+beyond {
			if b.dropKept(held + n - bound - beyond) {
				continue
			}
			return false // and nobody saw it taken: others might have been ended for that
		}
		if b.held.CompareAndSwap(held, held+n) {
			b.take(u, n)
			return true
		}
	}
}

// Force takes n bytes that are held already and cannot be refused, such as the
// rest of an answer that has begun. It may go beyond the bound: what
// is asked for next is refused then.
func (b *Budget) Force(u Use, n int64) {
	if b == nil || n == 0 {
		return
	}
	b.held.Add(n)
	b.take(u, n)
}

func (b *Budget) take(u Use, n int64) {
	b.by[u].Add(n)
	// Peaks are for the curious: a lost race costs one of two neighbouring values.
	if held := b.held.Load(); held > b.peak.Load() {
		b.peak.Store(held)
	}
}

// change has n bytes held for another use.
func (b *Budget) change(from, to Use, n int64) {
	b.by[from].Add(-n)
	b.by[to].Add(n)
}

// Release gives n bytes of a use back, and returns how many are still held for it.
func (b *Budget) Release(u Use, n int64) (left int64) {
	if b == nil {
		return 0
	}
	b.held.Add(-n)
	return b.by[u].Add(-n)
}

// Tight reports whether the budget is used up but for a quarter.
func (b *Budget) Tight() bool {
	if b == nil {
		return false
	}
	bound := b.bound.Load()
	return bound > 0 && b.held.Load() >= bound-bound/4
}

// Bound returns the bound in bytes, 0 for none.
func (b *Budget) Bound() int64 { return b.bound.Load() }

// String names the limit as messages do: "memory budget of 4 MiB".
func (b *Budget) String() string {
	bound := b.Bound()
	switch {
	case bound <= 0:
		return "memory budget without a bound"
	case bound < 10<<20:
		return fmt.Sprintf("memory budget of %d KiB", (bound+1<<9)>>10)
	}
	return fmt.Sprintf("memory budget of %d MiB", (bound+1<<19)>>20)
}

// Held returns the bytes held for all uses.
func (b *Budget) Held() int64 { return b.held.Load() }

// HeldFor returns the bytes held for one use.
func (b *Budget) HeldFor(u Use) int64 { return b.by[u].Load() }

// Peak returns about the most bytes ever held.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Refused returns how often Reserve found no room.
func (b *Budget) Refused() uint64 { return b.refused.Load() }
