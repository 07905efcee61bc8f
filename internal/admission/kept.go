package admission

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Kept is the part of a budget that nobody waits for: what a cache keeps, which can be made again. It gets
// room only while a quarter of the budget is free, and is the first to go when there is no room for something else.
type Kept struct {
	budget *Budget
	drop   func(n int64)
}

// keeps are those that have a part in a budget.
type keeps struct {
	mu   sync.Mutex // guards changes
	list atomic.Pointer[[]*Kept]
}

// Keep returns a part of the budget whose holder drops about n bytes, or all that it has, when it is told to: it calls Release
// before drop returns. drop may be called on any goroutine, also an event loop's, and several times at once. It must be quick, and
// ask nothing of the budget.
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

// Reserve takes n bytes, or reports that something must be dropped before.
func (k *Kept) Reserve(n int64) bool {
	b := k.budget
	for {
		held, bound := b.held.Load(), b.bound.Load()
		if bound > 0 && held+n > bound-bound/4 {
			return false
		}
		if b.held.CompareAndSwap(held, held+n) {
			b.take(InCache, n)
			return true
		}
	}
}

// Release gives n bytes back.
func (k *Kept) Release(n int64) { k.budget.Release(InCache, n) }

// dropKept makes room for n bytes, and reports whether it has made any.
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
