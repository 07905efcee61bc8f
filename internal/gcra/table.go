package gcra

import "sync"

// A Table keeps the TATs of many keys, which are known by 64-bit hashes that nobody outside can
// foresee: two keys that share one, which of a million happens to no two but once in 10^7 tables, share a quota.
//
// It is a hash table with open addressing in shards. A slot takes 16 bytes, and between a quarter
// and five eighths of the slots are in use once there are many keys: a key takes 26 to 64 bytes. What has expired stays where it is until its slot
// is needed: there is no timer.
type Table struct {
	shards [shards]shard // each is one line of a cache, on 64 bits
}

const (
	shards  = 64
	fewest  = 8 // slots of a shard that is in use
	nearby  = 8 // slots among which a victim is chosen
	usedNum = 5 // five eighths of the slots may be in use
	usedDen = 8
)

// Invariant of a shard: at least one slot is free (hash 0), and every key lies in the run of
// slots in use that begins at its home.
type shard struct {
	mu    sync.Mutex
	slots []slot // a power of two
	used  int32  // slots in use, expired ones included

	evictions int32 // that are made before expired slots are looked for again
	rate      Rate  // of the table
	most      int64 // slots of a shard of the table
}

type slot struct {
	hash uint64 // 0: free
	tat  int64
}

// NewTable returns an empty table for about so many keys at most: when there is no room for a
// new one, that among a few goes which has used least.
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

// Take judges a request of a key at a time, which must not go back, and notes it if it is admitted.
func (t *Table) Take(hash uint64, now int64) (v Verdict) {
	s, hash := t.shard(hash)
	s.mu.Lock()
	if n := len(s.slots); n > 0 {
		if e := &s.slots[int(hash)&(n-1)]; e.hash == hash { // it is at home, as most are
			e.tat, v = s.rate.Take(e.tat, now)
			s.mu.Unlock()
			return v
		}
	}
	v = s.take(hash, now)
	s.mu.Unlock()
	return v
}

// take is Table.Take in the shard, whose lock is held.
func (s *shard) take(hash uint64, now int64) (v Verdict) {
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

// Look is Take that notes nothing.
func (t *Table) Look(hash uint64, now int64) Verdict {
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

// Note sets how much a key has used, as somebody else knows it.
func (t *Table) Note(hash uint64, now, used int64) {
	s, hash := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.find(hash, now)
	s.put(at, known, slot{hash, now + used}, now)
}

// Bytes returns what the table takes.
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

// shard returns where a hash belongs, and the hash, which is not 0.
func (t *Table) shard(hash uint64) (*shard, uint64) {
	if hash == 0 {
		hash = 1
	}
	return &t.shards[hash>>58], hash // the upper 6 bits; slots are chosen by the lower ones
}

// find returns the slot of a hash, or, if it is not known, one that could be its: one that
// has expired, else a free one, else -1 in a shard without slots.
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
			at = i // it may be taken over: the run stays a run
		}
	}
}

// put stores a slot where find has said.
func (s *shard) put(at int, known bool, e slot, now int64) {
	if !known && (at < 0 || s.slots[at].hash == 0) { // one more is in use
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

// makeRoom drops what has expired, and doubles the slots where too much is left. At the bound it drops a key
// near to where the new one will be, and looks for expired ones only now and then.
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

// evict removes, of the first keys at or after a slot, the one that has used least: it loses least
// by being forgotten.
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

// remove frees a slot, and moves those behind it up that could not be found otherwise.
func (s *shard) remove(i int) {
	mask := len(s.slots) - 1
	for j := (i + 1) & mask; s.slots[j].hash != 0; j = (j + 1) & mask {
		home := int(s.slots[j].hash) & mask
		if (j-home)&mask >= (j-i)&mask { // its home is not between the gap and it
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
	s.used--
}
