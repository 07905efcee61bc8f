package store

// sweepInterval is the minimum time between two sweeps of a full store, in microseconds. A sweep for each call would be
// too expensive.
const sweepInterval = 100_000

// sampled is the number of entries that are checked for expiry when an entry is added. So expired entries are removed as
// fast as new entries arrive, even if their keys are never read again.
const sampled = 4

// reserve takes n bytes and reports whether there was room. A negative n releases bytes.
func (m *Memory) reserve(n int64) bool {
	if n <= 0 {
		m.giveBack(-n)
		return true
	}
	if m.held.Add(n) <= m.max && (m.budget == nil || m.budget.Reserve(n)) {
		return true
	}
	m.held.Add(-n)
	return false
}

// giveBack releases the bytes of a reservation.
func (m *Memory) giveBack(n int64) {
	m.held.Add(-n)
	if m.budget != nil && n != 0 {
		m.budget.Release(n)
	}
}

// sweepAll removes expired entries, unless a sweep has just run. If wait is false it skips locked shards. The caller
// must not hold the lock of a shard.
func (m *Memory) sweepAll(wait bool) {
	now, last := nowMicros(), m.swept.Load()
	if now-last < sweepInterval || !m.swept.CompareAndSwap(last, now) {
		return
	}
	for i := range m.shards {
		s := &m.shards[i]
		if wait {
			s.mu.Lock()
		} else if !s.mu.TryLock() {
			continue
		}
		m.giveBack(s.drop(func(expires int64) bool { return expires <= now }))
		s.mu.Unlock()
	}
}

// drop removes the entries for whose expiry time chosen reports true. It returns their cost. The caller holds the lock.
func (s *shard) drop(chosen func(expires int64) bool) (freed int64) {
	for key, v := range s.values {
		if chosen(v.expires) {
			freed += s.remove(key, v)
		}
	}
	return freed + numberCost*int64(s.numbers.drop(chosen))
}

// remove removes a value and returns its cost. The caller holds the lock.
func (s *shard) remove(key string, v value) int64 {
	delete(s.values, key)
	v.part.add(-v.cost(key))
	return v.cost(key)
}

// sweepSome checks a few entries and removes the expired ones. The random order of the map selects the values. The
// caller holds the lock.
func (m *Memory) sweepSome(s *shard, now int64) {
	seen := 0
	for key, v := range s.values {
		if v.expires <= now {
			m.giveBack(s.remove(key, v))
		}
		if seen++; seen == sampled {
			break
		}
	}
	m.giveBack(numberCost * int64(s.numbers.sweep(sampled, now)))
}
