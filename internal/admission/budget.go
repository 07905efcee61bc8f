package admission

import (
	"fmt"
	"sync/atomic"
)

// A Use is a purpose for which memory of a budget is held.
type Use uint8

const (
	Input     Use = iota // received and incomplete: heads, small bodies
	Body                 // request bodies that an action reads completely
	Output               // responses that clients have not read
	Stream               // buffers of responses that are being produced
	Queued               // complete requests that wait for a goroutine
	Handshake            // TLS handshakes in progress
	InCache              // cached data, see Kept
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

// A Budget counts the memory held for clients, in bytes, by use. Only unfinished work is counted: a request that is answered at
// once holds nothing. The capacity of buffers counts, not their length. All methods are safe for concurrent use. A nil Budget
// has no bound and counts nothing; the zero Budget counts.
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

// SetBound changes the bound; 0 is no bound. Held memory stays held.
func (b *Budget) SetBound(bound int64) { b.bound.Store(bound) }

// Reserve reserves n bytes for a use before they are filled. It returns false, and reserves nothing, if they do not fit.
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

// reserve is Reserve with a bound larger by beyond bytes, and does not count refusals.
func (b *Budget) reserve(u Use, n, beyond int64) bool {
	for {
		held, bound := b.held.Load(), b.bound.Load()
		if bound > 0 && held+n > bound+beyond {
			if b.dropKept(held + n - bound - beyond) {
				continue
			}
			return false // no other goroutine has seen the bytes, so no holder was evicted for them
		}
		if b.held.CompareAndSwap(held, held+n) {
			b.take(u, n)
			return true
		}
	}
}

// Force counts n bytes that are held already and cannot be refused, such as the rest of a response. The result may exceed the
// bound; later reservations fail then.
func (b *Budget) Force(u Use, n int64) {
	if b == nil || n == 0 {
		return
	}
	b.held.Add(n)
	b.take(u, n)
}

func (b *Budget) take(u Use, n int64) {
	b.by[u].Add(n)
	// The peak is informative: a lost race stores one of two close values.
	if held := b.held.Load(); held > b.peak.Load() {
		b.peak.Store(held)
	}
}

// change moves n bytes from one use to another.
func (b *Budget) change(from, to Use, n int64) {
	b.by[from].Add(-n)
	b.by[to].Add(n)
}

// Release releases n bytes of a use and returns the bytes still held for it.
func (b *Budget) Release(u Use, n int64) (left int64) {
	if b == nil {
		return 0
	}
	b.held.Add(-n)
	return b.by[u].Add(-n)
}

// Tight reports whether three quarters of the budget are held.
func (b *Budget) Tight() bool {
	if b == nil {
		return false
	}
	bound := b.bound.Load()
	return bound > 0 && b.held.Load() >= bound-bound/4
}

// Bound returns the bound in bytes, 0 for none.
func (b *Budget) Bound() int64 { return b.bound.Load() }

// String names the limit for messages: "memory budget of 4 MiB".
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

// Peak returns approximately the maximum of the bytes held.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Refused returns the number of failed calls of Reserve.
func (b *Budget) Refused() uint64 { return b.refused.Load() }
