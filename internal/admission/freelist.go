package admission

import "sync"

// A FreeList keeps things for whoever needs one next, the latest first, as long as
// they are few: a burst shall not pin its memory for ever. The zero value is empty. Its
// methods are safe for concurrent use.
type FreeList[T any] struct {
	mu   sync.Mutex
	free []T
}

// Take returns the thing that was kept last; false if there is none.
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

// Keep keeps a thing that nobody uses any more, unless most are kept already.
func (l *FreeList[T]) Keep(thing T, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < most {
		l.free = append(l.free, thing)
	}
}
