package middleware

import (
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
)

const cacheShards = 32

// A cacheShard has the entries of some URLs.
type cacheShard struct {
	mu      sync.Mutex
	entries map[uint64][]*cacheEntry // variants by cacheKey.hash, the latest first
	flights map[uint64]*cacheFlight
	epochs  [256]uint64   // number of invalidations, by hash: a response is not stored if the number has changed since its action began
	pass    [256]passMark // marks of uncacheable responses, by hash
	recent  cacheEntry    // ring: recent.next is the most recently used, recent.prev the least
}

// A passMark records that the responses to a key are not cacheable, so requests with this key do not
// wait for each other.
type passMark struct {
	hash  uint64
	until time.Duration
}

// passFor is the lifetime of a passMark.
const passFor = time.Minute

// maxVariants is the maximum number of variants of one URL.
const maxVariants = 64

func (s *cacheShard) init() {
	s.entries, s.flights = map[uint64][]*cacheEntry{}, map[uint64]*cacheFlight{}
	s.recent.prev, s.recent.next = &s.recent, &s.recent
}

// all yields the entries of a locked shard. The loop may remove the entry that was yielded.
func (s *cacheShard) all() iter.Seq[*cacheEntry] {
	return func(yield func(*cacheEntry) bool) {
		for e := s.recent.next; e != &s.recent; {
			next := e.next
			if !yield(e) {
				return
			}
			e = next
		}
	}
}

func (s *cacheShard) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for range s.all() {
		n++
	}
	return n
}

func (s *cacheShard) unlink(e *cacheEntry) { e.prev.next, e.next.prev = e.next, e.prev }

func (s *cacheShard) toFront(e *cacheEntry) {
	e.prev, e.next = &s.recent, s.recent.next
	e.prev.next, e.next.prev = e, e
}

func (k *ResponseCache) shard(base uint64) *cacheShard { return &k.shards[base%cacheShards] }

func epochOf(base uint64) uint64 { return base / cacheShards % 256 }

func (k *ResponseCache) epoch(key *cacheKey) uint64 {
	s := k.shard(key.base)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epochs[epochOf(key.base)]
}

func (s *cacheShard) passMark(id uint64) *passMark {
	return &s.pass[id/cacheShards%uint64(len(s.pass))]
}

// flightID selects the requests that wait for each other. Requests with credentials and requests
// without them have separate flights, because they must not share responses.
func flightID(key *cacheKey, req httpcache.Request) uint64 {
	if req.Authorized || req.Identified {
		return ^key.hash
	}
	return key.hash
}

// lookUp returns the usable entry for a request, or the flight that the request leads or waits for, or
// neither if the request must run the action by itself. For a leader it also returns the stale entry,
// which may be sent instead of an error.
func (k *ResponseCache) lookUp(r *dunlin.Request, key *cacheKey, req httpcache.Request, asked *httpcache.Directives) (e *cacheEntry, f *cacheFlight, leads bool) {
	s, now, id := k.shard(key.base), k.at(r), flightID(key, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	e = k.match(s, r, key)
	if e != nil && (req.Authorized || req.Identified) && !e.shareable {
		e = nil
	}
	if e != nil {
		e.used = now
		if s.recent.next != e {
			s.unlink(e)
			s.toFront(e)
		}
		accepted := asked == nil || asked.Accepts(now-e.born, e.freshUntil-e.born)
		f = s.flights[id]
		switch {
		case accepted && now < e.freshUntil,
			accepted && f != nil && now < e.staleUntil,
			asked != nil && asked.OnlyIfCached && now < e.staleUntil,
			asked != nil && accepted && e.mayBeStale && asked.AcceptsStale(now-e.freshUntil):
			return e, nil, false
		}
	}
	if r.Method() != http.MethodGet {
		return nil, nil, false // the response to HEAD cannot answer the waiting requests for GET
	}
	if mark := s.passMark(id); mark.hash == id && now < mark.until {
		return e, nil, true
	}
	if f = s.flights[id]; f != nil {
		return nil, f, false
	}
	f = &cacheFlight{id: id, done: make(chan struct{}), stale: e}
	s.flights[id] = f
	return e, f, true
}

// match returns the variant that a request selects. The caller holds the shard's lock.
func (k *ResponseCache) match(s *cacheShard, r *dunlin.Request, key *cacheKey) *cacheEntry {
	var room [httpcache.MostVary]string
	var names, values []string // the fields looked up last, and their values
	for _, e := range s.entries[key.hash] {
		if !e.key.same(key) {
			continue
		}
		if !slices.Equal(names, e.vary) {
			names, values = e.vary, selected(r, e.vary, room[:0])
		}
		if len(e.vary) == 0 || sameSelection(e.vary, values, e.values) {
			return e
		}
	}
	return nil
}

// sameSelection reports whether two lists of request field values select the same variant.
func sameSelection(vary, a, b []string) bool {
	for i, name := range vary {
		if !httpcache.SameSelection(name, a[i], b[i]) {
			return false
		}
	}
	return true
}

// selected appends the values of the request fields that a Vary names.
func selected(r *dunlin.Request, vary, values []string) []string {
	for _, name := range vary {
		values = append(values, r.HeaderList(name))
	}
	return values
}

// same reports whether two keys are equal; it compares more than hashes.
func (key *cacheKey) same(other *cacheKey) bool {
	return key.path == other.path && key.query == other.query && key.host == other.host && key.secure == other.secure && key.extra == other.extra && key.sent == other.sent &&
		key.spelt == other.spelt &&
		key.rerouted == other.rerouted
}

// finish ends a flight; f may be nil.
func (k *ResponseCache) finish(key *cacheKey, f *cacheFlight) {
	if f == nil {
		return
	}
	f.once.Do(func() {
		s := k.shard(key.base)
		s.mu.Lock()
		delete(s.flights, f.id)
		s.mu.Unlock()
		close(f.done)
	})
}

// store stores an entry if allowed, and reports whether it did. With a nil entry and lasting it
// sets a passMark.
func (k *ResponseCache) store(key *cacheKey, req httpcache.Request, e *cacheEntry, epoch uint64, lasting bool) bool {
	s := k.shard(key.base)
	room := e != nil && k.makeRoom(e.size)
	s.mu.Lock()
	defer s.mu.Unlock()
	mark, id := s.passMark(flightID(key, req)), flightID(key, req)
	if room && s.epochs[epochOf(key.base)] != epoch {
		k.giveBack(e.size)
		return false
	}
	if !room || e.freshUntil <= e.born {
		if lasting {
			*mark = passMark{id, k.now() + passFor}
		}
	} else if mark.hash == id {
		*mark = passMark{}
	}
	if !room {
		return false
	}
	variants := s.entries[key.hash]
	for _, old := range variants {
		if old.made > e.made && old.key.same(key) && (!slices.Equal(old.vary, e.vary) || slices.Equal(old.values, e.values)) {
			k.giveBack(e.size) // a newer response was stored meanwhile
			return false
		}
	}
	k.counts.stored.Add(1)
	for _, old := range slices.Clone(variants) {
		if !old.key.same(key) || slices.Equal(old.vary, e.vary) && slices.Equal(old.values, e.values) || !slices.Equal(old.vary, e.vary) {
			k.drop(s, old) // replaced, or selected by fields that Vary no longer names
		}
	}
	for len(s.entries[key.hash]) >= maxVariants {
		oldest := s.entries[key.hash]
		k.drop(s, oldest[len(oldest)-1])
		k.counts.evicted.Add(1)
	}
	s.entries[key.hash] = slices.Insert(s.entries[key.hash], 0, e)
	s.toFront(e)
	return true
}

// clone returns a copy of the key in its own memory, because the strings of a request would keep the
// memory of the request alive.
func (key *cacheKey) clone() cacheKey {
	own := *key
	own.host, own.path, own.query, own.extra = strings.Clone(key.host), strings.Clone(key.path), strings.Clone(key.query), strings.Clone(key.extra)
	own.sent, own.spelt = strings.Clone(key.sent), strings.Clone(key.spelt) // rerouted is already a copy
	return own
}

// size returns the length of the key's strings, in bytes.
func (key *cacheKey) size() int64 {
	return int64(len(key.host) + len(key.path) + len(key.query) + len(key.extra) + len(key.sent) + len(key.spelt) + len(key.rerouted))
}

// makeRoom reserves n bytes, and evicts entries for them if necessary. It reports false if there is no
// room. The caller must not hold the lock of a shard.
func (k *ResponseCache) makeRoom(n int64) bool {
	if n > k.config.MaxBytes {
		return false
	}
	for k.held.Add(n) > k.config.MaxBytes || k.memory != nil && !k.memory.Reserve(n) {
		k.held.Add(-n)
		if !k.evict() {
			return false
		}
	}
	return true
}

// giveBack releases n bytes that makeRoom has reserved.
func (k *ResponseCache) giveBack(n int64) {
	k.held.Add(-n)
	if k.memory != nil {
		k.memory.Release(n)
	}
}

// shrink evicts copies and entries until n bytes are released or none is left.
func (k *ResponseCache) shrink(n int64) {
	for goal := k.held.Load() - n; k.held.Load() > max(goal, 0) && (k.evict() || k.giveUpIdle(0)); {
	}
}

// sampledShards is the number of non-empty shards in which evict searches for the least recently used entry.
const sampledShards = 8

// evict discards a stalled copy or, if there is none, one of the least recently used entries. It reports whether it found a
// copy or an entry to discard.
func (k *ResponseCache) evict() bool {
	if k.giveUpIdle(stalledAfter) {
		return true
	}
	var victim *cacheShard
	var oldest time.Duration
	begin, seen := k.nextShard.Add(sampledShards), 0
	for i := uint32(0); i < cacheShards && seen < sampledShards; i++ {
		s := &k.shards[(begin+i)%cacheShards]
		s.mu.Lock()
		if e := s.recent.prev; e != &s.recent {
			seen++
			if victim == nil || e.used < oldest {
				victim, oldest = s, e.used
			}
		}
		s.mu.Unlock()
	}
	if victim == nil {
		return false
	}
	victim.mu.Lock()
	defer victim.mu.Unlock()
	if e := victim.recent.prev; e != &victim.recent {
		k.drop(victim, e)
		k.counts.evicted.Add(1)
	}
	return true
}

// drop removes an entry. The caller holds the shard's lock.
func (k *ResponseCache) drop(s *cacheShard, e *cacheEntry) {
	if e.gone {
		return
	}
	e.gone = true
	s.unlink(e)
	k.giveBack(e.size)
	left := slices.DeleteFunc(s.entries[e.key.hash], func(other *cacheEntry) bool { return other == e })
	if len(left) == 0 {
		delete(s.entries, e.key.hash)
		return
	}
	s.entries[e.key.hash] = left
}
