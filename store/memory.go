package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// MemoryConfig configures a store in memory. A zero field selects its documented default.
type MemoryConfig struct {
	// MaxBytes is the maximum size of the store in bytes: keys, values and their index. A full store removes expired
	// entries, but never evicts an entry that has not expired. If there is no room, new entries fail with ErrFull.
	// Default: 32 MiB.
	MaxBytes int64

	// Budget also charges the size of the store to another budget, such as the memory budget of an app:
	//
	//	store.NewMemory(store.MemoryConfig{Budget: store.Within(ext.CacheBudget(app))})
	//
	// If that budget has no room, new entries fail with ErrFull. If other users of the budget need room, they call
	// drop, which removes expired entries. Default: only MaxBytes limits the store.
	Budget func(drop func(bytes int64)) Budget

	// Logger gets a warning, at most once a minute, while four fifths of MaxBytes are in use. Default: slog.Default()
	// at the time of the call of NewMemory.
	Logger *slog.Logger
}

// A Budget grants memory before a store uses it. Its methods must be safe for concurrent use.
type Budget interface {
	// Reserve asks for n bytes. It reports whether the budget has room and has charged them.
	Reserve(n int64) bool
	// Release returns n bytes that Reserve has granted.
	Release(n int64)
}

// Within returns a MemoryConfig.Budget for a function that opens a budget.
func Within[B Budget](open func(drop func(bytes int64)) B) func(drop func(bytes int64)) Budget {
	return func(drop func(int64)) Budget { return open(drop) }
}

const (
	defaultBytes = 32 << 20
	longestTTL   = 10 * 365 * 24 * time.Hour // maximum time to live: a longer one is shortened to it
)

// A Memory is a store in the memory of the process, for services with one process and for tests. Its only goroutines
// are those of subscriptions. It has no timer: expired entries are removed when new entries are added.
type Memory struct {
	max      int64
	budget   Budget // or nil
	held     atomic.Int64
	versions atomic.Uint64
	closed   atomic.Bool
	seed     maphash.Seed
	second   maphash.Seed  // seed of the second half of a numberKey
	swept    atomic.Int64  // time of the last full sweep
	full     atomic.Uint64 // number of calls that failed with ErrFull
	warned   atomic.Int64  // time of the last warning, in microseconds since 1970
	logger   *slog.Logger
	parts    parts
	topics   topics
	shards   [shards]shard
}

// MemoryStats describes the fill level of a store in memory.
type MemoryStats struct {
	Bytes    int64  `json:"bytes"` // size, as returned by Held
	MaxBytes int64  `json:"maxBytes"`
	Full     uint64 `json:"full"` // calls that failed with ErrFull
}

// Stats returns a snapshot. AddStats of package ext adds it to the statistics of an app.
func (m *Memory) Stats() MemoryStats { return MemoryStats{m.Held(), m.max, m.full.Load()} }

const shards = 64

// A shard has a part of the keys and its own lock, so that goroutines rarely wait for a lock.
type shard struct {
	mu      sync.Mutex
	values  map[string]value
	numbers numbers
	_       [8]byte // padding: shards do not share a cache line
}

type value struct {
	bytes   []byte
	version Version
	expires int64 // microseconds since 1970
	part    *part // the part in which the value is counted, or nil
}

// valueCost is the cost of a value in addition to its key and its bytes, in bytes. It covers slots of the map, which is
// three quarters full on average, and the rounding of allocations.
const valueCost = 120

// NewMemory returns an empty store. It panics if a setting is invalid.
func NewMemory(c MemoryConfig) *Memory {
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultBytes
	}
	if c.MaxBytes < 0 {
		panic(fmt.Sprintf("store: MemoryConfig.MaxBytes is %d: it must not be negative", c.MaxBytes))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	m := &Memory{max: c.MaxBytes, logger: logqueue.New(c.Logger.Handler()).Patient(), seed: maphash.MakeSeed(), second: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].values = map[string]value{}
	}
	if c.Budget != nil {
		m.budget = c.Budget(func(int64) { m.sweepAll(false) })
	}
	return m
}

// Held returns the approximate size of the store, in bytes.
func (m *Memory) Held() int64 { return m.held.Load() }

func (m *Memory) shard(key string) *shard {
	return &m.shards[maphash.String(m.seed, key)%shards]
}

// begin checks the arguments that all methods have.
func (m *Memory) begin(ctx context.Context, key string) error {
	switch {
	case key == "":
		return errNoKey
	case m.closed.Load():
		return ErrClosed
	}
	return ctx.Err()
}

func nowMicros() int64 { return time.Now().UnixMicro() }

// until returns the expiry time for a time to live.
func until(now int64, ttl time.Duration) int64 {
	return now + int64(max((min(ttl, longestTTL)+time.Microsecond-1)/time.Microsecond, 0))
}

// Get implements Store.Get.
func (m *Memory) Get(ctx context.Context, key string) (Item, error) {
	if err := m.begin(ctx, key); err != nil {
		return Item{}, err
	}
	now, s := nowMicros(), m.shard(key)
	s.mu.Lock()
	v, ok := s.values[key]
	s.mu.Unlock()
	if !ok || v.expires <= now {
		return Item{}, ErrNotFound
	}
	return Item{v.bytes, v.version, time.Duration(v.expires-now) * time.Microsecond}, nil
}

// Set implements Store.Set.
func (m *Memory) Set(ctx context.Context, key string, bytes []byte, have Version, ttl time.Duration) (Version, error) {
	if err := m.begin(ctx, key); err != nil {
		return VersionAbsent, err
	}
	if err := Check(key, ttl); err != nil {
		return VersionAbsent, err
	}
	own := append([]byte(nil), bytes...)
	version, full, err := m.set(key, own, have, ttl)
	if full {
		m.sweepAll(true)
		version, full, err = m.set(key, own, have, ttl)
	}
	m.warn()
	if full {
		m.full.Add(1)
		return VersionAbsent, ErrFull
	}
	return version, err
}

// set is Set, except that it reports full and changes nothing if the store is full.
func (m *Memory) set(key string, own []byte, have Version, ttl time.Duration) (version Version, full bool, err error) {
	now, s := nowMicros(), m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, there := s.values[key]
	current := old.version
	if there && old.expires <= now {
		current = VersionAbsent
	}
	if have != VersionAny && have != current {
		return VersionAbsent, false, ErrConflict
	}
	v := value{own, Version(m.versions.Add(1)), until(now, ttl), m.parts.of(key)}
	more, before := v.cost(key), int64(0)
	if there {
		before = old.cost(key)
	} else {
		m.sweepSome(s, now)
	}
	if there && v.part != old.part { // the old value was set before Bound was called
		old.part.add(-before)
		v.part.add(before)
		old.part = v.part
		s.values[key] = old
	}
	if !v.part.fits(more - before) {
		return VersionAbsent, true, nil
	}
	if !m.reserve(more - before) {
		v.part.add(before - more)
		return VersionAbsent, true, nil
	}
	s.values[key] = v
	return v.version, false, nil
}

func (v *value) cost(key string) int64 { return int64(len(key) + len(v.bytes) + valueCost) }

// Expire implements Store.Expire.
func (m *Memory) Expire(ctx context.Context, key string, ttl time.Duration) error {
	if err := m.begin(ctx, key); err != nil {
		return err
	}
	now, s := nowMicros(), m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	if !ok || v.expires <= now {
		return ErrNotFound
	}
	if ttl <= 0 {
		m.giveBack(s.remove(key, v))
		return nil
	}
	v.expires = until(now, ttl)
	s.values[key] = v
	return nil
}

// Add implements Store.Add.
func (m *Memory) Add(ctx context.Context, key string, n int64, ttl time.Duration) (sum int64, err error) {
	if err := m.begin(ctx, key); err != nil {
		return 0, err
	}
	if err := Check(key, ttl); err != nil {
		return 0, err
	}
	err = m.change(key, func(now, old, expires int64) (int64, int64) {
		if sum = old + n; old == 0 {
			expires = until(now, ttl)
		}
		return sum, expires
	})
	if err != nil {
		return 0, err
	}
	return sum, nil
}

// TakeQuota decides about a request of a rate limit. It is for middleware.RateLimit.
func (m *Memory) TakeQuota(ctx context.Context, key string, rate gcra.Rate) (v gcra.Verdict, err error) {
	if err := m.begin(ctx, key); err != nil {
		return gcra.Verdict{}, err
	}
	err = m.change(key, func(now, tat, _ int64) (int64, int64) {
		tat, v = rate.TakeStored(tat, now)
		return tat, tat
	})
	return v, err
}

// change changes a number. f gets the time, the number and the number's expiry time, and returns the new number and its
// expiry time. A number of 0 is removed. f is called while the number's shard is locked, and again if the store is full.
func (m *Memory) change(key string, f func(now, n, expires int64) (int64, int64)) error {
	full := m.tryChange(key, f)
	if full {
		m.sweepAll(true)
		full = m.tryChange(key, f)
	}
	m.warn()
	if full {
		m.full.Add(1)
		return ErrFull
	}
	return nil
}

// tryChange is change, except that it reports full and changes nothing if the store is full.
func (m *Memory) tryChange(key string, f func(now, n, expires int64) (int64, int64)) (full bool) {
	hash := numberKey{maphash.String(m.seed, key), maphash.String(m.second, key)}
	s := &m.shards[hash.first%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := nowMicros()
	at, there := s.numbers.find(hash)
	var old numberSlot
	if there {
		old = s.numbers.slots[at]
	}
	if old.expires <= now {
		old.n = 0
	}
	n, expires := f(now, old.n, old.expires)
	switch {
	case n == 0:
		if there {
			s.numbers.remove(at)
			m.giveBack(numberCost)
		}
		return false
	case there:
		s.numbers.slots[at] = numberSlot{hash, n, expires}
		return false
	}
	m.sweepSome(s, now)
	if !m.reserve(numberCost) {
		return true
	}
	s.numbers.add(numberSlot{hash, n, expires})
	return false
}

// Publish implements Store.Publish.
func (m *Memory) Publish(ctx context.Context, topic string, message []byte) error {
	if err := m.begin(ctx, topic); err != nil {
		return err
	}
	m.topics.publish(topic, message)
	return nil
}

// Subscribe implements Store.Subscribe.
func (m *Memory) Subscribe(ctx context.Context, topic string, receive func(Message)) error {
	if err := m.begin(ctx, topic); err != nil {
		return err
	}
	return m.topics.subscribe(ctx, topic, receive)
}

// Close implements Store.Close.
func (m *Memory) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.topics.close()
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		m.giveBack(s.drop(func(int64) bool { return true }))
		s.mu.Unlock()
	}
	return nil
}
