package redis

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/store"
)

// A redisStore stores a value as a hash of its version (n) and its bytes (v) under the prefix and "v:", and a number as a
// string under the prefix and "n:".
type redisStore struct {
	link     atomic.Pointer[link]
	prefix   string
	replicas int             // number of replicas that must confirm a write to a value
	writers  []chan struct{} // with replicas: limits the concurrent writes to each part

	closing context.Context // ends subscriptions
	close   context.CancelFunc

	atOnce   chan struct{} // limits the concurrent calls
	division *division
	gate     *gate

	audiences audiences

	dial            func() (rueidis.Client, error) // opens another link; nil for a cluster
	linking         sync.Mutex                     // held while a link is opened
	began           time.Time
	checkAt, seekAt atomic.Int64 // earliest time of the next check or search, in nanoseconds after began
}

func newStore(client rueidis.Client, prefix string, division *division, gate *gate) *redisStore {
	s := &redisStore{prefix: prefix, atOnce: make(chan struct{}, maxAtOnce), division: division, gate: gate, began: time.Now()}
	s.link.Store(newLink(client))
	s.closing, s.close = context.WithCancel(context.Background())
	gate.mu.Lock()
	gate.parts = make([]gatePart, division.parts)
	gate.mu.Unlock()
	return s
}

var (
	getScript = rueidis.NewLuaScript(`local e = redis.call('HMGET', KEYS[1], 'n', 'v')
if not e[1] then return false end
return {e[1], e[2], redis.call('PTTL', KEYS[1])}`)

	// A version is the time in microseconds, or the previous version plus one if that is greater. Versions therefore increase
	// and never repeat.
	setText = `local have = redis.call('HGET', KEYS[1], 'n') or '0'
if ARGV[1] ~= '*' and ARGV[1] ~= have then return false end
local t = redis.call('TIME')
local n = math.max(tonumber(t[1]) * 1000000 + tonumber(t[2]), tonumber(have) + 1)
local version = string.format('%.0f', n)
redis.call('HSET', KEYS[1], 'n', version, 'v', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return version`
	setScript = rueidis.NewLuaScript(setText)

	// ARGV: the number to add, and the time to live in milliseconds. Lua formats large numbers with an exponent unless told %.0f.
	addScript = rueidis.NewLuaScript(`local old = tonumber(redis.call('GET', KEYS[1]) or '0')
local sum = string.format('%.0f', old + tonumber(ARGV[1]))
if sum == '0' then redis.call('DEL', KEYS[1])
elseif old == 0 then redis.call('SET', KEYS[1], sum, 'PX', ARGV[2])
else redis.call('SET', KEYS[1], sum, 'KEEPTTL') end
return sum`)

	// takeScript is gcra.Rate.TakeStored. ARGV: interval and tolerance in microseconds. It returns the used part of an admitted
	// request, or -1 minus the used part of a refused one.
	takeScript = rueidis.NewLuaScript(`local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
local tat = tonumber(redis.call('GET', KEYS[1]) or '0')
local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local used = math.max(math.min(tat, now + tolerance) - now, 0)
local result = -1 - used
if used + interval <= tolerance then
  used = used + interval
  result = used
end
if now + used ~= tat then
  redis.call('SET', KEYS[1], string.format('%.0f', now + used), 'PX', string.format('%.0f', math.ceil(used / 1000)))
end
return string.format('%.0f', result)`)
)

// WAIT covers what its connection has written, and a DEL of a missing key writes nothing. The script therefore writes something
// in any case, which shows that an earlier DEL is confirmed.
const endText = `if redis.call('DEL', KEYS[1]) == 1 then return 1 end
redis.call('SET', KEYS[1], '', 'PX', 1)
redis.call('DEL', KEYS[1])
return 0`

const longestTTL = 10 * 365 * 24 * time.Hour

// millis returns a time to live in milliseconds, as an argument for Redis.
func millis(ttl time.Duration) string {
	ttl = min(ttl, longestTTL)
	return strconv.FormatInt(int64((ttl+time.Millisecond-1)/time.Millisecond), 10)
}

func (s *redisStore) valueKey(key string) string { return s.prefix + "v:" + untagged(key) }

// untagged returns a key whose slot in a cluster depends on the entire key. Redis hashes only the text between braces if a key
// has them. Clients choose parts of some keys, and could otherwise collect many keys on one node.
func untagged(key string) string {
	if !strings.Contains(key, "{") {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "{" + base64.RawURLEncoding.EncodeToString(sum[:]) + "}" + key
}

func (s *redisStore) begin(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closing.Err() != nil {
		return store.ErrClosed
	}
	return store.Check(key, 1)
}

// enter is like begin, for a call that waits for its response until end.
func (s *redisStore) enter(ctx context.Context, key string, number bool) (*link, error) {
	if err := s.begin(ctx, key); err != nil {
		return nil, err
	}
	if err := s.pass(ctx, key, number); err != nil {
		return nil, err
	}
	select {
	case s.atOnce <- struct{}{}:
		s.check()
		return s.use(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *redisStore) end(l *link) {
	l.calls.RUnlock()
	<-s.atOnce
}

// Shards and Shard implement store.Sharded, with one shard for each master of a cluster.
func (s *redisStore) Shards() int { return s.division.parts }

func (s *redisStore) Shard(key string, number bool) int {
	if s.division.parts == 1 {
		return 0
	}
	return s.division.of(s.redisKey(key, number))
}

// Probe implements store.Sharded.
func (s *redisStore) Probe(ctx context.Context, key string, number bool) error {
	l, err := s.enter(ctx, key, number)
	if err != nil {
		return err
	}
	defer s.end(l)
	return s.errorOf(l.client.Do(ctx, l.client.B().Arbitrary("EXISTS").Keys(s.redisKey(key, number)).Build()).Error())
}

func (s *redisStore) redisKey(key string, number bool) string {
	if number {
		return s.prefix + "n:" + untagged(key)
	}
	return s.valueKey(key)
}

// errorOf translates an error of Redis to one of package store. If the error reports that another Redis is the master, errorOf
// starts a search for it.
func (s *redisStore) errorOf(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, rueidis.ErrClosing) {
		return store.ErrClosed
	}
	if isNoMaster(err) {
		s.seek()
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		switch text := reply.Error(); {
		case strings.HasPrefix(text, "OOM ") || strings.Contains(text, "command not allowed when used memory"):
			return fmt.Errorf("%w: %w", store.ErrFull, err)
		case isRefusal(text):
			return refused(err)
		}
	}
	return err
}

// isRefusal reports whether a reply of Redis refuses this call only, so that other calls may succeed. The cause is the key, its
// value, the permissions of the user, or that Redis does not accept writes. Replies of a Redis that serves no call, such as
// LOADING, CLUSTERDOWN and BUSY, are not refusals. Neither are unknown replies, which may come from a proxy.
func isRefusal(reply string) bool {
	for _, word := range []string{"READONLY ", "NOREPLICAS ", "MISCONF ", "WRONGTYPE ", "NOPERM ", "unknown command "} { // rueidis removes the prefix ERR
		if strings.HasPrefix(reply, word) {
			return true
		}
	}
	return strings.Contains(reply, "user_script")
}

// refused returns the error of a call that Redis answered but did not execute. store.Guard does not count it as a failure of
// Redis.
func refused(err error) error { return fmt.Errorf("%w: %w", store.ErrUnavailable, err) }

// Get implements store.Store.
func (s *redisStore) Get(ctx context.Context, key string) (store.Item, error) {
	l, err := s.enter(ctx, key, false)
	if err != nil {
		return store.Item{}, err
	}
	defer s.end(l)
	parts, err := getScript.Exec(ctx, l.client, []string{s.valueKey(key)}, nil).ToArray()
	if rueidis.IsRedisNil(err) {
		return store.Item{}, store.ErrNotFound
	}
	if err != nil {
		return store.Item{}, s.errorOf(err)
	}
	if len(parts) != 3 {
		return store.Item{}, fmt.Errorf("store/redis: Get: Redis answers %d parts, want 3", len(parts))
	}
	version, err := parts[0].AsUint64()
	if err != nil {
		return store.Item{}, fmt.Errorf("store/redis: Get: the version: %w", err)
	}
	value, err := parts[1].AsBytes()
	if err != nil {
		return store.Item{}, fmt.Errorf("store/redis: Get: the value: %w", err)
	}
	left, err := parts[2].AsInt64()
	if err != nil {
		return store.Item{}, fmt.Errorf("store/redis: Get: the time left: %w", err)
	}
	return store.Item{Value: value, Version: store.Version(version), TTL: max(time.Duration(left)*time.Millisecond, time.Microsecond)}, nil
}

// Set implements store.Store.
func (s *redisStore) Set(ctx context.Context, key string, value []byte, have store.Version, ttl time.Duration) (store.Version, error) {
	l, err := s.enter(ctx, key, false)
	if err != nil {
		return store.VersionAbsent, err
	}
	defer s.end(l)
	if err := store.Check(key, ttl); err != nil {
		return store.VersionAbsent, err
	}
	want := "*"
	if have != store.VersionAny {
		want = strconv.FormatUint(uint64(have), 10)
	}
	var answer rueidis.RedisResult
	if s.replicas == 0 {
		answer = setScript.Exec(ctx, l.client, []string{s.valueKey(key)}, []string{want, string(value), millis(ttl)}) // a copy: the command may still be queued after the deadline
	} else {
		args := []string{want, string(value), millis(ttl)} // a copy: the caller may return before the command is sent
		answer = s.write(ctx, l, key, func(b rueidis.Builder) rueidis.Completed {
			return b.Eval().Script(setText).Numkeys(1).Key(s.valueKey(key)).Arg(args...).Build()
		})
	}
	version, err := answer.AsUint64()
	if rueidis.IsRedisNil(err) {
		return store.VersionAbsent, store.ErrConflict
	}
	return store.Version(version), s.errorOf(err)
}

// Expire implements store.Store.
func (s *redisStore) Expire(ctx context.Context, key string, ttl time.Duration) error {
	l, err := s.enter(ctx, key, false)
	if err != nil {
		return err
	}
	defer s.end(l)
	n, err := s.write(ctx, l, key, func(b rueidis.Builder) rueidis.Completed {
		if ttl > 0 {
			return b.Arbitrary("PEXPIRE").Keys(s.valueKey(key)).Args(millis(ttl)).Build()
		}
		if s.replicas > 0 {
			return b.Eval().Script(endText).Numkeys(1).Key(s.valueKey(key)).Build()
		}
		return b.Arbitrary("DEL").Keys(s.valueKey(key)).Build()
	}).AsInt64()
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return s.errorOf(err)
}

// Add implements store.Store.
func (s *redisStore) Add(ctx context.Context, key string, n int64, ttl time.Duration) (int64, error) {
	if err := store.Check(key, ttl); err != nil {
		return 0, err
	}
	return s.change(ctx, key, addScript, strconv.FormatInt(n, 10), millis(ttl))
}

// TakeQuota implements gcra.Store.
func (s *redisStore) TakeQuota(ctx context.Context, key string, rate gcra.Rate) (gcra.Verdict, error) {
	n, err := s.change(ctx, key, takeScript, strconv.FormatInt(rate.Interval, 10), strconv.FormatInt(rate.Tolerance, 10))
	if err != nil {
		return gcra.Verdict{}, err
	}
	if n >= 0 {
		return gcra.Verdict{Admitted: true, Used: n}, nil
	}
	used := -1 - n
	return gcra.Verdict{Used: used, Wait: used + rate.Interval - rate.Tolerance}, nil
}

// change runs a script that changes the number of a key.
func (s *redisStore) change(ctx context.Context, key string, script *rueidis.Lua, args ...string) (int64, error) {
	l, err := s.enter(ctx, key, true)
	if err != nil {
		return 0, err
	}
	defer s.end(l)
	n, err := script.Exec(ctx, l.client, []string{s.redisKey(key, true)}, args).AsInt64()
	return n, s.errorOf(err)
}

// channel returns the name of a topic's channel. It has the slot of the key with the topic's name.
func (s *redisStore) channel(topic string) string { return s.valueKey(topic) }

// Publish implements store.Store. Any node of a cluster accepts a message. Publish sends all messages of a topic to the same
// node, because a node forwards messages in the order in which it receives them.
func (s *redisStore) Publish(ctx context.Context, topic string, message []byte) error {
	l, err := s.enter(ctx, topic, false)
	if err != nil {
		return err
	}
	defer s.end(l)
	return s.errorOf(l.client.Do(ctx, l.client.B().Arbitrary("PUBLISH").Keys(s.channel(topic)).Args(string(message)).Build()).Error())
}

// Close implements store.Store.
func (s *redisStore) Close() error {
	if s.closing.Err() == nil {
		s.close()
		s.link.Load().client.Close()
	}
	return nil
}
