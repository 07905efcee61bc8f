package middleware

import (
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// A cacheEntry is an answer that is kept. It is not changed once it is in a shard, but for its place in the ring.
type cacheEntry struct {
	prev, next *cacheEntry
	used       time.Duration // when it was asked for last
	gone       bool          // shard.mu guards the four

	key    cacheKey
	vary   []string // fields that chose it, and their values
	values []string

	status       int
	fields       []string // names and values
	body         []byte
	etag         string
	lastModified string
	shareable    bool
	size         int64

	born       time.Duration // when its age was 0
	freshUntil time.Duration
	staleUntil time.Duration // while another is made
	errorUntil time.Duration // instead of an error

	rendered [2]atomic.Pointer[renderedEntry] // fresh and stale, as of one second
}

type renderedEntry struct {
	age  int64
	resp dunlin.Response // plain, so that it may be sent any number of times
}

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
	if req.Authorized || req.Cookies {
		return ^key.hash
	}
	return key.hash
}

// look finds what there is for a request: an entry that may be sent, if it does not lead; or a flight, which it leads or
// waits for; or neither, when it is to run on its own. Who leads gets the entry that may be sent
// instead of an error.
func (k *ResponseCache) look(r *dunlin.Request, key *cacheKey, req httpcache.Request, asked *httpcache.Directives) (e *cacheEntry, f *cacheFlight, leads bool) {
	s, now, id := k.shard(key.base), k.now(), flightID(key, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	e = k.match(s, r, key)
	if e != nil && (req.Authorized || req.Cookies) && !e.shareable {
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
			asked != nil && asked.OnlyIfCached && now < e.staleUntil:
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
	f = &cacheFlight{id: id, done: make(chan struct{})}
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
		if len(e.vary) == 0 || slices.Equal(values, e.values) {
			return e
		}
	}
	return nil
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
	return key.path == other.path && key.query == other.query && key.host == other.host && key.secure == other.secure && key.extra == other.extra && key.rerouted == other.rerouted
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

// store keeps an answer if it may be, and returns its entry.
func (k *ResponseCache) store(r *dunlin.Request, key *cacheKey, req httpcache.Request, resp dunlin.Response, epoch uint64) *cacheEntry {
	if r.Method() != http.MethodGet {
		return nil
	}
	e := k.newEntry(r, key, req, resp)
	s := k.shard(key.base)
	if e != nil && !k.makeRoom(e.size) {
		e = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := flightID(key, req)
	if e == nil || s.epochs[epochOf(key.base)] != epoch {
		if e != nil {
			k.giveBack(e.size)
		} else if resp.StatusCode() < http.StatusInternalServerError && r.Context().Err() == nil {
			*s.passMark(id) = passMark{id, k.now() + passFor}
		}
		return nil
	}
	if mark := s.passMark(id); mark.hash == id {
		*mark = passMark{}
	}
	k.counts.stored.Add(1)
	variants := s.entries[key.hash]
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
	return e
}

// newEntry returns the entry of an answer, nil if it may not be kept.
func (k *ResponseCache) newEntry(r *dunlin.Request, key *cacheKey, req httpcache.Request, resp dunlin.Response) *cacheEntry {
	if resp.Len() < 0 || resp.Len() > k.config.MaxEntry || resp.Err() != nil {
		return nil
	}
	vary, always := httpcache.ParseVary(resp.Values("Vary")...)
	about := httpcache.Response{
		Status: resp.StatusCode(), Directives: httpcache.ParseDirectives(resp.Values("Cache-Control")...),
		Expires: strings.Join(resp.Values("Expires"), ", "), HasExpires: len(resp.Values("Expires")) > 0, Date: resp.Get("Date"),
		SetsCookie: len(resp.Values("Set-Cookie")) > 0, VariesAlways: always,
	}
	if !about.MayStore(req, time.Now()) {
		return nil
	}
	now, age := k.now(), about.Age(resp.Get("Age"), time.Now())
	fresh := about.Freshness(time.Now()) - age
	if fresh <= 0 {
		return nil
	}
	e := &cacheEntry{
		key: key.clone(), vary: vary, status: resp.StatusCode(), body: slices.Clone(resp.Body()),
		etag: resp.Get(etag), lastModified: resp.Get("Last-Modified"), shareable: about.Shareable(),
		born: now - age, freshUntil: now + fresh, used: now,
	}
	whileRevalidate, ifError := about.Stale(k.config.StaleWhileRevalidate, k.config.StaleIfError)
	e.staleUntil, e.errorUntil = e.freshUntil+whileRevalidate, e.freshUntil+ifError
	const overhead = 1024 // of the entry, its blocks and its places in map and ring
	e.size = overhead + int64(len(e.body)+len(key.host)+len(key.path)+len(key.query)+len(key.extra))
	for name, value := range resp.Fields() {
		if !leaveOut(name) {
			e.fields = append(e.fields, strings.Clone(name), strings.Clone(value))
			e.size += 4 * int64(len(name)+len(value)+16) // kept, and rendered for two engines
		}
	}
	for _, v := range selected(r, vary, nil) {
		e.values = append(e.values, strings.Clone(v))
		e.size += int64(len(v) + 32)
	}
	return e
}

// clone returns the key in memory of its own: strings of a request keep others alive.
func (key *cacheKey) clone() cacheKey {
	own := *key
	own.host, own.path, own.query, own.extra = strings.Clone(key.host), strings.Clone(key.path), strings.Clone(key.query), strings.Clone(key.extra)
	for i, v := range own.rerouted {
		own.rerouted[i] = strings.Clone(v)
	}
	return own
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

// shrink drops entries of so many bytes, if there are.
func (k *ResponseCache) shrink(n int64) {
	for goal := k.held.Load() - n; k.held.Load() > max(goal, 0) && k.evict(); {
	}
}

// looked is in how many shards, that have something, the entry is looked for that goes.
const looked = 8

// evict drops an entry that was not asked for for about the longest time, and reports false when there is none.
func (k *ResponseCache) evict() bool {
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

// response returns the answer as of now. It is rendered once a second at most.
func (e *cacheEntry) response(now time.Duration, status string) dunlin.Response {
	age := int64((now - e.born) / time.Second)
	slot := &e.rendered[0]
	if status != cacheStatusHit {
		slot = &e.rendered[1]
	}
	if done := slot.Load(); done != nil && done.age == age {
		return done.resp
	}
	fields := append(slices.Clip(e.fields), "Age", strconv.FormatInt(age, 10), "Cache-Status", status)
	resp := dunlin.Empty()
	if len(e.body) > 0 {
		resp = resp.WithBody(e.body)
	}
	resp = resp.Status(e.status).Headers(dunlin.NewHeaderBlock(fields...))
	slot.Store(&renderedEntry{age, resp})
	return resp
}

// notModified reports whether a conditional request has the entry's answer already (RFC 9110 section 13.2.2).
func (e *cacheEntry) notModified(r *dunlin.Request) bool {
	if r.Header("If-None-Match") != "" {
		return e.etag != "" && !noneMatch(r, e.etag)
	}
	since := r.Header("If-Modified-Since")
	if since == "" || e.lastModified == "" {
		return false
	}
	have, err := http.ParseTime(since)
	if err != nil {
		return false
	}
	modified, err := http.ParseTime(e.lastModified)
	return err == nil && !modified.After(have)
}
