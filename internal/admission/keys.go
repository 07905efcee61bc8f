package admission

import (
	"hash/maphash"
	"sync"
)

// Keys counts what runs for each key, up to a bound for each. All methods are safe
// for concurrent use.
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
	running keyCount[string]
	_       [40]byte // the next is another processor's
}

// NewKeys returns a count that allows each key most.
func NewKeys(most int) *Keys {
	return &Keys{most: most, seed: maphash.MakeSeed()}
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
	return s.running.take(key, k.most)
}

// Release takes back a Take that returned true.
func (k *Keys) Release(key string) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.release(key)
}

// Len returns how many keys are counted.
func (k *Keys) Len() (n int) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		n += len(s.running.counts)
		s.mu.Unlock()
	}
	return n
}
