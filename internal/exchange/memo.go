package exchange

import "sync"

// A Memo keeps what was made for a few keys. Beyond mostMemos keys, values are made each time.
type Memo[K comparable, V any] struct {
	mu sync.RWMutex
	by map[K]V
}

const mostMemos = 64

// Get returns the value of a key, which make makes when there is none.
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
	if len(m.by) < mostMemos {
		m.by[key] = v
	}
	return v
}
