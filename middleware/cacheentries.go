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
	epochs  [256]uint64   // count invalidations, by hash: what was begun before one is not stored
	pass    [256]passMark // of what was not to be stored, by hash
	recent  cacheEntry    // ring: recent.next was asked for last, recent.prev is the first to go
}

// A passMark says that the answers of a key are not stored: nobody waits for another's.
type passMark struct {
	hash  uint64
	until time.Duration
}

// passFor is how long that is believed.
const passFor = time.Minute

// mostVariants bounds the answers of one URL that differ by Vary.
const mostVariants = 64

func (s *cacheShard) init() {
	s.entries, s.flights = map[uint64][]*cacheEntry{}, map[uint64]*cacheFlight{}
	s.recent.prev, s.recent.next = &s.recent, &s.recent
}

// all yields the entries, of which the one that was yielded may be removed. The shard is locked.
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

// flightID says which requests wait for each other: those with credentials do not mix with others, who may be
// sent what those may not.
func flightID(key *cacheKey, req httpcache.Request) uint64 {
	if req.Authorized || req.Identified {
		return ^key.hash
	}
	return key.hash
}

// look finds what there is for a request: an entry that may be sent, if it does not lead; or a flight, which it leads or
// waits for; or neither, when it is to run on its own. Who leads gets the entry that may be sent
// instead of an error.
func (k *ResponseCache) look(r *dunlin.Request, key *cacheKey, req httpcache.Request, asked *httpcache.Directives) (e *cacheEntry, f *cacheFlight, leads bool) {
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
		return nil, nil, false // what GET would get is not known from it
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

// match returns the variant that a request chooses. The shard is locked.
func (k *ResponseCache) match(s *cacheShard, r *dunlin.Request, key *cacheKey) *cacheEntry {
	var room [httpcache.MostVary]string
	var names, values []string // looked for last, and what was found
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

// sameSelection reports whether values of request fields choose the same variant.
func sameSelection(vary, a, b []string) bool {
	for i, name := range vary {
		if !httpcache.SameSelection(name, a[i], b[i]) {
			return false
		}
	}
	return true
}

// selected appends the values of the fields that a Vary names.
func selected(r *dunlin.Request, vary, values []string) []string {
	for _, name := range vary {
		values = append(values, r.HeaderList(name))
	}
	return values
}

// same reports whether two keys are the same, not their hashes only.
func (key *cacheKey) same(other *cacheKey) bool {
	return key.path == other.path && key.query == other.query && key.host == other.host && key.secure == other.secure && key.extra == other.extra && key.sent == other.sent &&
		key.spelt == other.spelt &&
		key.rerouted == other.rerouted
}

// finish ends a flight, if there is one.
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

// store keeps an entry if it may be, and reports whether it is kept. With nil it notes that there is nothing to wait for, if lasting.
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
			*mark = passMark{id, k.now() + passFor} // nobody waits for another's
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
			k.giveBack(e.size) // it came sooner, and took longer
			return false
		}
	}
	k.counts.stored.Add(1)
	for _, old := range slices.Clone(variants) {
		if !old.key.same(key) || slices.Equal(old.vary, e.vary) && slices.Equal(old.values, e.values) || !slices.Equal(old.vary, e.vary) {
			k.drop(s, old) // replaced, or chosen by other fields than the answer says now
		}
	}
	for len(s.entries[key.hash]) >= mostVariants {
		oldest := s.entries[key.hash]
		k.drop(s, oldest[len(oldest)-1])
		k.counts.evicted.Add(1)
	}
	s.entries[key.hash] = slices.Insert(s.entries[key.hash], 0, e)
	s.toFront(e)
	return true
}

// clone returns the key in memory of its own: strings of a request keep others alive.
func (key *cacheKey) clone() cacheKey {
	own := *key
	own.host, own.path, own.query, own.extra = strings.Clone(key.host), strings.Clone(key.path), strings.Clone(key.query), strings.Clone(key.extra)
	own.sent, own.spelt = strings.Clone(key.sent), strings.Clone(key.spelt) // rerouted is the key's own
	return own
}

// size returns how many bytes of strings the key holds.
func (key *cacheKey) size() int64 {
	return int64(len(key.host) + len(key.path) + len(key.query) + len(key.extra) + len(key.sent) + len(key.spelt) + len(key.rerouted))
}

// makeRoom takes n bytes, for which others may have to go. No shard is locked by the caller.
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

// giveBack is the end of makeRoom.
func (k *ResponseCache) giveBack(n int64) {
	k.held.Add(-n)
	if k.memory != nil {
		k.memory.Release(n)
	}
}

// shrink gives up copies and drops entries of so many bytes, if there are.
func (k *ResponseCache) shrink(n int64) {
	for goal := k.held.Load() - n; k.held.Load() > max(goal, 0) && (k.evict() || k.giveUpIdle(0)); {
	}
}

// looked is in how many shards, that have something, the entry is looked for that goes.
const looked = 8

// evict gives up a copy that does not get on, or else drops an entry that was not asked for for about the longest time. It reports
// false when there is neither.
func (k *ResponseCache) evict() bool {
	if k.giveUpIdle(stalledAfter) {
		return true
	}
	var victim *cacheShard
	var oldest time.Duration
	begin, seen := k.turn.Add(looked), 0
	for i := uint32(0); i < cacheShards && seen < looked; i++ {
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

// drop removes an entry. The shard is locked.
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
