package memory

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Kept is a reclaimable part of a budget, for a cache. The cache grows only while a quarter of the budget stays free, and cached
// data is dropped first when memory is needed.
type Kept struct {
	budget *Budget
	drop   func(n int64)
}

// keeps has all Kept parts of a budget.
type keeps struct {
	mu   sync.Mutex // guards changes
	list atomic.Pointer[[]*Kept]
}

// Keep returns a reclaimable part of the budget. When memory is needed, the budget calls drop, which must drop at least about n
// bytes if there are so many, and must call Release for them before it returns. drop may be called on any goroutine, also on that
// of an event loop, and concurrently. It must be quick and must not reserve memory.
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

// Reserve reserves n bytes. It returns false if there is no room; the cache may drop other data and try again.
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

// Release ends the charge of n bytes.
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
