package exchange

import "sync"

// A Memo caches the values of up to maxMemos keys. The values of other keys are computed at each call. Safe for concurrent use.
type Memo[K comparable, V any] struct {
	mu sync.RWMutex
	by map[K]V
}

const maxMemos = 64

// Get returns the value for key. If it is not cached, make computes it.
func (m *Memo[K, V]) Get(key K, make func() V) V {
	m.mu.RLock()
	v, ok := m.by[key]
	m.mu.RUnlock()
	if ok {
		return v
	}
	v = make()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[K]V{}
	}
	if len(m.by) < maxMemos {
		m.by[key] = v
	}
	return v
}
