package admission

import (
	"hash/maphash"
	"sync"
)

// Keys counts requests in flight for each key, up to a limit for each. All methods are safe for concurrent use.
type Keys struct {
	limit  int
	seed   maphash.Seed
	shards [keyShards]keyShard
}

// keyShards is the number of locks. It is a power of two.
const keyShards = 16

type keyShard struct {
	mu      sync.Mutex
	running keyCount[string]
	_       [40]byte // pads the shard to a cache line
}

// NewKeys returns a counter with a limit for each key.
func NewKeys(limit int) *Keys {
	return &Keys{limit: limit, seed: maphash.MakeSeed()}
}

func (k *Keys) shard(key string) *keyShard {
	return &k.shards[maphash.String(k.seed, key)%keyShards]
}

// Take counts another request for key. If key has reached the limit, it counts nothing and returns false. The key is
// retained until Release.
func (k *Keys) Take(key string) bool {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running.add(key, k.limit)
}

// Release undoes a successful Take.
func (k *Keys) Release(key string) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.release(key)
}

// Len returns the number of keys with requests in flight.
func (k *Keys) Len() (n int) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		n += len(s.running.counts)
		s.mu.Unlock()
	}
	return n
}
