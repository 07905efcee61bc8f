package gcra

import "sync"

// A Table keeps the TATs of many keys, identified by seeded 64-bit hashes. Keys with the same hash share a quota: of 10^7 tables
// with a million keys, about one has such keys. The methods are safe for concurrent use.
//
// It is a sharded hash table with open addressing. A slot takes 16 bytes. In a large table a quarter to five eighths
// of the slots are used, so a key takes 26 to 64 bytes. There is no timer: an expired key stays until its slot is
// needed.
type Table struct {
	shards [shards]shard // each is one cache line on 64-bit systems
}

const (
	shards  = 64
	fewest  = 8 // minimum number of slots in a used shard
	nearby  = 8 // number of candidates for eviction
	usedNum = 5 // at most usedNum/usedDen of the slots are used
	usedDen = 8
)

// Invariants of a shard: at least one slot is free (hash 0); every key lies in the run of used slots that begins at
// its home slot.
type shard struct {
	mu    sync.Mutex
	slots []slot // length is a power of two
	used  int32  // used slots, including expired ones

	evictions int32 // number of evictions until the next search for expired keys
	rate      Rate  // of the table
	most      int64 // maximum number of slots of a shard
}

type slot struct {
	hash uint64 // 0 if free
	tat  int64
}

// NewTable returns an empty table for about the given number of keys. When it is full, a new key replaces the key with the lowest
// use among a few neighbors.
func NewTable(rate Rate, keys int) *Table {
	most := fewest
	for most/usedDen*usedNum*shards < keys {
		most *= 2
	}
	t := new(Table)
	for i := range t.shards {
		t.shards[i].rate, t.shards[i].most = rate, int64(most)
	}
	return t
}

// Take decides about a request of a key at time now, and records it if it is admitted. Time must not go back.
func (t *Table) Take(hash uint64, now int64) (v Verdict) {
	s, hash := t.shard(hash)
	s.mu.Lock()
	if n := len(s.slots); n > 0 {
		if e := &s.slots[int(hash)&(n-1)]; e.hash == hash { // the common case: the key is in its home slot
			e.tat, v = s.rate.Take(e.tat, now)
			s.mu.Unlock()
			return v
		}
	}
	v = s.takeLocked(hash, now)
	s.mu.Unlock()
	return v
}

// takeLocked is Table.Take in the shard. The caller holds the lock.
func (s *shard) takeLocked(hash uint64, now int64) (v Verdict) {
	var tat int64
	at, known := s.find(hash, now)
	if known {
		tat = s.slots[at].tat
	}
	tat, v = s.rate.Take(tat, now)
	if v.Admitted {
		s.put(at, known, slot{hash, tat}, now)
	}
	return v
}

// Peek is Take without recording the request.
func (t *Table) Peek(hash uint64, now int64) Verdict {
	s, hash := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	var tat int64
	if at, known := s.find(hash, now); known {
		tat = s.slots[at].tat
	}
	_, v := s.rate.Take(tat, now)
	return v
}

// Record sets the used part of a key's tolerance, for a caller that knows it from another counter.
func (t *Table) Record(hash uint64, now, used int64) {
	s, hash := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.find(hash, now)
	s.put(at, known, slot{hash, now + used}, now)
}

// Bytes returns the size of the table.
func (t *Table) Bytes() int64 {
	var n int64
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += int64(len(s.slots)) * 16
		s.mu.Unlock()
	}
	return n
}

// shard returns the shard of a hash, and the hash, or 1 instead of 0, which marks free slots.
func (t *Table) shard(hash uint64) (*shard, uint64) {
	if hash == 0 {
		hash = 1
	}
	return &t.shards[hash>>58], hash // by the upper 6 bits; the lower bits choose the slot
}

// find returns the slot of a hash. For an unknown hash it returns a slot to use: an expired one, otherwise a free one,
// otherwise -1 in a shard without slots.
func (s *shard) find(hash uint64, now int64) (at int, known bool) {
	at = -1
	if len(s.slots) == 0 {
		return at, false
	}
	mask := len(s.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		e := &s.slots[i]
		switch {
		case e.hash == hash:
			return i, true
		case e.hash == 0:
			if at < 0 {
				at = i
			}
			return at, false
		case at < 0 && e.tat <= now:
			at = i // to reuse an expired slot keeps the run of used slots intact
		}
	}
}

// put stores e in the slot returned by find.
func (s *shard) put(at int, known bool, e slot, now int64) {
	if !known && (at < 0 || s.slots[at].hash == 0) { // another slot is needed
		if int(s.used)+1 > len(s.slots)/usedDen*usedNum {
			s.makeRoom(e.hash, now)
			at, _ = s.find(e.hash, now)
		}
		if s.slots[at].hash == 0 {
			s.used++
		}
	}
	s.slots[at] = e
}

// makeRoom removes expired keys, and doubles the number of slots if too many remain. In a table of maximum size it
// evicts a key near the home slot of the new one, and searches for expired keys only occasionally.
func (s *shard) makeRoom(hash uint64, now int64) {
	if s.evictions > 0 {
		s.evictions--
		s.evict(int(hash) & (len(s.slots) - 1))
		return
	}
	live := 0
	for i := range s.slots {
		if s.slots[i].hash != 0 && s.slots[i].tat > now {
			live++
		}
	}
	size := max(len(s.slots), fewest)
	if live*2 > size && size < int(s.most) {
		size *= 2
	}
	if live+1 > size/usedDen*usedNum {
		s.evictions = int32(size / usedDen)
		s.evict(int(hash) & (len(s.slots) - 1))
		return
	}
	old := s.slots
	s.slots, s.used = make([]slot, size), 0
	for _, e := range old {
		if e.hash != 0 && e.tat > now {
			at, _ := s.find(e.hash, now)
			s.slots[at] = e
			s.used++
		}
	}
}

// evict removes the key with the lowest use among the first keys at or after a slot, because its quota is nearly unused.
func (s *shard) evict(home int) {
	mask := len(s.slots) - 1
	victim, seen := -1, 0
	for i := home; seen < nearby; i = (i + 1) & mask {
		if e := &s.slots[i]; e.hash != 0 {
			if victim < 0 || e.tat < s.slots[victim].tat {
				victim = i
			}
			seen++
		}
	}
	s.remove(victim)
}

// remove frees a slot and moves following keys into the gap if their search would end there.
func (s *shard) remove(i int) {
	mask := len(s.slots) - 1
	for j := (i + 1) & mask; s.slots[j].hash != 0; j = (j + 1) & mask {
		home := int(s.slots[j].hash) & mask
		if (j-home)&mask >= (j-i)&mask { // the key's home is not between the gap and its slot
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
	s.used--
}
