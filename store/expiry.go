package store

// sweepInterval is how often, in microseconds, everything is looked at for what has
// expired while the bound is reached: each call would pay for all of it otherwise.
const sweepInterval = 100_000

// sampled is how many entries are looked at for each that is new: what has expired
// goes as fast as new entries come, though nobody looks for it.
const sampled = 4

// reserve takes n bytes, or reports that there is no room for them. A negative n gives back.
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

// giveBack ends what reserve has begun.
func (m *Memory) giveBack(n int64) {
	m.held.Add(-n)
	if m.budget != nil && n != 0 {
		m.budget.Release(n)
	}
}

// sweepAll removes what has expired, unless that was done a moment ago; without waiting, from what is not in use. No shard is
// locked by the caller.
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

// drop removes the entries whose end is chosen, and returns what they cost. The shard is
// locked.
func (s *shard) drop(chosen func(expires int64) bool) (freed int64) {
	for key, v := range s.values {
		if chosen(v.expires) {
			freed += s.remove(key, v)
		}
	}
	return freed + numberCost*int64(s.numbers.drop(chosen))
}

// remove removes a value, and returns what it cost. The shard is locked.
func (s *shard) remove(key string, v value) int64 {
	delete(s.values, key)
	v.part.add(-v.cost(key))
	return v.cost(key)
}

// sweepSome looks at a few entries, values whichever the map shows first, and removes those that
// have expired. The shard is locked.
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
