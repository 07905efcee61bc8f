package admission

import (
	"hash/maphash"
	"sync"
)

// Keys counts what runs for each key, up to a bound for each. All methods are safe
// for concurrent use. It holds an entry for a key only while its count is not
// zero.
type Keys struct {
	most   int
	seed   maphash.Seed
	shards [keyShards]keyShard
}

// keyShards is how many keys can be counted at once without waiting for each
// other, if they are lucky. A power of two.
const keyShards = 16

type keyShard struct {
	mu      sync.Mutex
	running map[string]int
	peak    int      // entries there have been since running was made
	_       [40]byte // the next is another processor's
}

// NewKeys returns a count that allows each key most.
func NewKeys(most int) *Keys {
	k := &Keys{most: most, seed: maphash.MakeSeed()}
	for i := range k.shards {
		k.shards[i].running = make(map[string]int)
	}
	return k
}

func (k *Keys) shard(key string) *keyShard {
	return &k.shards[maphash.String(k.seed, key)%keyShards]
}

// Take counts one more for key, and reports false if it has as many as it may.
// The key is kept until Release.
func (k *Keys) Take(key string) bool {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.running[key]
	if n >= k.most {
		return false
	}
	s.running[key] = n + 1
	s.peak = max(s.peak, len(s.running))
	return true
}

// keptKeys is how many entries there may have been in a shard's map that is kept,
// however few there are now: maps do not shrink.
const keptKeys = 256

// Release takes back a Take that returned true.
func (k *Keys) Release(key string) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.running[key]; n > 1 {
		s.running[key] = n - 1
		return
	}
	delete(s.running, key)
	if len(s.running) == 0 && s.peak > keptKeys {
		s.running, s.peak = make(map[string]int), 0
	}
}

// Len returns how many keys are counted.
func (k *Keys) Len() (n int) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		n += len(s.running)
		s.mu.Unlock()
	}
	return n
}
