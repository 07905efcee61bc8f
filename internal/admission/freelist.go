package admission

import "sync"

// A FreeList stores items for reuse, the most recent first, up to a limit, so that a burst does not pin its memory. The zero
// value is empty. Its methods are safe for concurrent use.
type FreeList[T any] struct {
	mu   sync.Mutex
	free []T
}

// Take returns the most recently stored item, and false if there is none.
func (l *FreeList[T]) Take() (thing T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	if last < 0 {
		return thing, false
	}
	thing = l.free[last]
	clear(l.free[last:])
	l.free = l.free[:last]
	return thing, true
}

// TakeAll empties the list.
func (l *FreeList[T]) TakeAll() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.free
	l.free = nil
	return all
}

// Keep stores an unused item, unless most are stored already.
func (l *FreeList[T]) Keep(thing T, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < most {
		l.free = append(l.free, thing)
	}
}
