package memory

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Kept is a reclaimable part of a budget, for caches. It grows only while a quarter of the budget is free, and is dropped first
// when memory is needed.
type Kept struct {
	budget *Budget
	drop   func(n int64)
}

// keeps are the Kept parts of a budget.
type keeps struct {
	mu   sync.Mutex // guards changes
	list atomic.Pointer[[]*Kept]
}

// Keep returns a reclaimable part of the budget. When memory is needed, drop is called to drop about n bytes, or all: it calls
// Release before it returns. drop may be called on any goroutine, also an event loop's, and concurrently. It must be quick and
// must not reserve memory.
func (b *Budget) Keep(drop func(n int64)) *Kept {
	k := &Kept{b, drop}
	b.keeps.mu.Lock()
	defer b.keeps.mu.Unlock()
	var list []*Kept
	if old := b.keeps.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = append(list, k)
	b.keeps.list.Store(&list)
	return k
}

// Reserve reserves n bytes. It returns false if something must be dropped before.
func (k *Kept) Reserve(n int64) bool {
	b := k.budget
	for {
		held, bound := b.held.Load(), b.bound.Load()
		if bound > 0 && held+n > bound-bound/4 {
			return false
		}
		if b.held.CompareAndSwap(held, held+n) {
			b.charge(InCache, n)
			return true
		}
	}
}

// Release gives n bytes back.
func (k *Kept) Release(n int64) { k.budget.force(InCache, -n) }

// dropKept drops cached data to free n bytes, and reports whether any was dropped.
func (b *Budget) dropKept(n int64) bool {
	list := b.keeps.list.Load()
	before := b.by[InCache].Load()
	if list == nil || before <= 0 {
		return false
	}
	for _, k := range *list {
		left := n - (before - b.by[InCache].Load())
		if left <= 0 {
			break
		}
		k.drop(left)
	}
	return b.by[InCache].Load() < before
}
