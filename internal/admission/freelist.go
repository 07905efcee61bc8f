package admission

import "sync"

// A FreeList stores items for reuse, the most recent first, up to a limit, so that a burst does not pin its memory. The zero
// value is empty. Its methods are safe for concurrent use.
type FreeList[T any] struct {
	mu   sync.Mutex
	free []T
}

// Take returns the most recently stored item, and false if there is none.
func (l *FreeList[T]) Take() (item T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	if last < 0 {
		return item, false
	}
	item = l.free[last]
	clear(l.free[last:])
	l.free = l.free[:last]
	return item, true
}

// TakeAll empties the list and returns its items, the most recent last.
func (l *FreeList[T]) TakeAll() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.free
	l.free = nil
	return all
}

// Keep stores an unused item, unless the list already holds limit items.
func (l *FreeList[T]) Keep(item T, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < limit {
		l.free = append(l.free, item)
	}
}
