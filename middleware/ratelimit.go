package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/store"
)

// RateLimitConfig has the settings of [RateLimit]. Limit and Window must be set. Any other zero field selects its
// documented default.
type RateLimitConfig struct {
	// Limit is the number of requests that a client may send in each Window, on average. The rate
	// must not exceed a million requests a second.
	Limit  int
	Window time.Duration

	// Burst is the number of requests that a client may send at once after a pause. After that it may
	// send one request each Window/Limit. Default: Limit.
	Burst int

	// Key returns the name of the client that sent a request, such as [User] does. The name must be
	// authenticated: with the value of an unchecked header, a client has a quota for each value that it
	// sends. If Key returns "", the client's address is used. Default: the client's address, see
	// [dunlin.Request.Remote].
	Key func(*dunlin.Request) string

	// IPv6Prefix is the number of leading bits of an IPv6 address that identify a client. Providers
	// give a customer a network with a prefix of 48 to 64 bits. Default: 64.
	IPv6Prefix int

	// Name is the policy's name in the response fields, and a part of its keys in Store. Limits
	// that share a store need different names. Default: "default".
	Name string

	// Store counts for all processes together. The stores of this repository, also inside a
	// store.Guard, decide in one atomic step, by the clock of the store. With another store, RateLimit
	// stores the quota as a value and changes it by compare-and-set, by the clocks of the processes.
	// If ten attempts fail because other requests change the same key, the store counts as unavailable
	// for this request. Default: each process counts for itself, in memory, with at most 64 bytes per
	// key, like a store.Memory.
	Store store.Store

	// Away selects the behaviour while Store is unavailable. Default: RateAwayLimitLocally.
	Away RateAway

	// MaxKeys is the maximum number of keys in memory. At the limit, the least used keys are
	// evicted first. Default: 262144, which take at most 16 MiB.
	MaxKeys int

	// Logger logs, at level Warn and once a second at most, that Store is unavailable. Default:
	// slog.Default().
	Logger *slog.Logger
}

// RateAway is the behaviour of RateLimit while its store is unavailable.
type RateAway uint8

const (
	// RateAwayLimitLocally counts in each process, so that two processes together admit twice the limit.
	RateAwayLimitLocally RateAway = iota
	// RateAwayRefuse answers 503 with Retry-After.
	RateAwayRefuse
)

// RateLimit answers 429 Too Many Requests to clients that send too many requests. It does so before
// the request body is read and before later middleware runs. It uses the generic cell rate
// algorithm: the quota is replenished evenly, so there is no window boundary at which twice as many
// requests pass.
//
// Each response has the fields RateLimit-Policy and RateLimit, as in
// draft-ietf-httpapi-ratelimit-headers-11: the limit, the number of requests that are left (r), and the
// seconds until the whole limit is available again (t). Numbers above 512 are rounded, r down and t up.
// A refusal also has Retry-After, and is a problem of the type quota-exceeded. If an action has several
// limits, each adds its own fields.
//
// With a Store, all processes count together. If a process already knows that a client is over its
// limit, it refuses the request without a call to a store on another machine. A call to the store can
// fail or block, so wrap the store in a store.Guard.
//
// Install RateLimit to count all requests of the app or a group before other middleware runs. For a single route, or
// if Key needs the result of authentication, use it as middleware:
//
//	app.Install(middleware.RateLimit(perAddress))
//	app.Post("/login", login, middleware.RateLimit(logins).Middleware())
//	api := app.Group("/api", middleware.KeyAuth(keys), middleware.RateLimit(perUser).Middleware())
//
// [dunlin.Route.LimitBy] is different: it limits the number of concurrent requests. RateLimit panics for an
// invalid setting.
func RateLimit(rate RateLimitConfig) dunlin.Feature {
	l := newRateLimiter(rate)
	if l.Key == nil && l.Store == nil { // the fast case
		return edgeParts{rate: l}.feature(nil)
	}
	return dunlin.Hooks{Wrap: func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			c := l.identify(r)
			if !c.limited {
				return next(r)
			}
			v, ok := l.judge(r, &c)
			if !ok {
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "rate limiting is temporarily unavailable"}).
					Header("Retry-After", "1")
			}
			if !v.Admitted {
				return l.fields.refusal(r, v)
			}
			return l.fields.add(next(r), v)
		}
	}}
}

// decide decides about a request by its address and the counts in memory.
func (l *rateLimiter) decide(r *dunlin.Request) (v gcra.Verdict, limited bool) {
	ip, hash := r.Remote().Addr(), uint64(0)
	switch {
	case ip.Is4(): // the usual case
		b := ip.As4()
		hash = l.hash4(binary.BigEndian.Uint32(b[:]))
	case !ip.IsValid():
		return v, false // a unix socket: only the proxy in front of it knows the client
	default:
		hash = l.hashOf(ip)
	}
	return l.table.Take(hash, l.now(r)), true
}

// A quickLimit has the fields of a rateLimiter that most requests need, for a limit by address in
// memory.
type quickLimit struct {
	table    *gcra.Table
	seed4    [2]uint64
	began    int64 // by the clock of exchange.Nanos
	interval int64
	little   uint64              // see rateFields
	least    *dunlin.HeaderBlock // see rateFields; only the field RateLimit
	fields   *rateFields
}

func (l *rateLimiter) quick() quickLimit {
	return quickLimit{l.table, l.seed4, exchange.Nanos(l.began), l.fields.rate.Interval, l.fields.little, l.fields.least.limit, l.fields}
}

// decide decides about a request by its IPv4 address. now is a time of exchange.Nanos.
func (q *quickLimit) decide(ip uint32, now int64) gcra.Verdict {
	return q.table.Take(hash4(&q.seed4, ip), max(now-q.began, 0)+1)
}

// limit returns the field RateLimit of a response to an admitted request.
func (q *quickLimit) limit(v gcra.Verdict) *dunlin.HeaderBlock {
	if uint64(v.Used-q.interval) <= q.little { // most clients have used almost nothing
		return q.least
	}
	return q.fields.find(v.Used).limit
}

// A rateLimiter is the state of a RateLimit, shared by all its routes.
type rateLimiter struct {
	// Fields that most requests need are adjacent.
	table  *gcra.Table
	fields *rateFields
	began  time.Time
	seed4  [2]uint64 // seed of hash4

	seed   maphash.Seed
	quotas gcra.Store // Store, if it decides in one step
	stored gcra.Rate  // in microseconds, for Store
	near   bool       // Store is in this process: it decides every request, and table has no copy of its counts; see judge
	prefix string
	away   logqueue.Repeated
	RateLimitConfig
}

func newRateLimiter(rate RateLimitConfig) *rateLimiter {
	if rate.Burst == 0 {
		rate.Burst = rate.Limit
	}
	if rate.Name == "" {
		rate.Name = "default"
	}
	if rate.IPv6Prefix == 0 {
		rate.IPv6Prefix = 64
	}
	if rate.MaxKeys == 0 {
		rate.MaxKeys = 1 << 18
	}
	rate.Logger = patient(rate.Logger)
	if err := rate.validate(); err != nil {
		panic("middleware: RateLimit: " + err.Error())
	}
	interval := int64(rate.Window) / int64(rate.Limit)
	inMicros := (interval + 999) / 1000
	if rate.Store != nil {
		interval = inMicros * 1000 // the same interval as in the store
	}
	if s, ok := rate.Store.(interface{ Prompt() store.Store }); ok && rate.Away == RateAwayLimitLocally {
		rate.Store = s.Prompt() // RateLimit can count in this process while the store is silent
	}
	quotas, _ := rate.Store.(gcra.Store)
	_, near := rate.Store.(*store.Memory)
	inNanos := gcra.Rate{Interval: interval, Tolerance: interval * int64(rate.Burst)}
	return &rateLimiter{
		RateLimitConfig: rate,
		table:           gcra.NewTable(inNanos, rate.MaxKeys),
		quotas:          quotas,
		stored:          gcra.Rate{Interval: inMicros, Tolerance: inMicros * int64(rate.Burst)},
		near:            near,
		fields:          newRateFields(&rate, inNanos),
		prefix:          storedPrefix(rate.Name),
		seed:            maphash.MakeSeed(),
		began:           time.Now(),
		seed4:           [2]uint64{rand.Uint64(), rand.Uint64() | 1},
	}
}

// validate returns an error for the first invalid setting.
func (rate *RateLimitConfig) validate() error {
	const longest = 365 * 24 * time.Hour
	switch {
	case rate.Limit < 1:
		return fmt.Errorf("RateLimitConfig.Limit is %d: it must be positive", rate.Limit)
	case rate.Window <= 0 || rate.Window > longest:
		return fmt.Errorf("RateLimitConfig.Window is %v: it must be positive, and at most a year", rate.Window)
	case rate.Window/time.Duration(rate.Limit) < time.Microsecond:
		return fmt.Errorf("%d requests in %v exceed the maximum of a million a second", rate.Limit, rate.Window)
	case rate.Burst < 1:
		return fmt.Errorf("RateLimitConfig.Burst is %d: it must not be negative", rate.Burst)
	case int64(rate.Burst) > int64(10*longest)/(int64(rate.Window)/int64(rate.Limit)):
		return fmt.Errorf("RateLimitConfig.Burst is %d: it exceeds the quota of ten years", rate.Burst)
	case rate.MaxKeys < 1:
		return fmt.Errorf("RateLimitConfig.MaxKeys is %d: it must not be negative", rate.MaxKeys)
	case rate.IPv6Prefix < 1 || rate.IPv6Prefix > 128:
		return fmt.Errorf("RateLimitConfig.IPv6Prefix is %d: it must be from 1 to 128", rate.IPv6Prefix)
	case rate.Away > RateAwayRefuse:
		return fmt.Errorf("RateLimitConfig.Away is %d: it must be RateAwayLimitLocally or RateAwayRefuse", rate.Away)
	}
	for _, c := range []byte(rate.Name) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return fmt.Errorf("RateLimitConfig.Name is %q: it must be visible ASCII without quotes and backslashes", rate.Name)
		}
	}
	return nil
}

// A rateClient is the client that a request counts for.
type rateClient struct {
	hash    uint64
	key     string     // from Key; "" for an address
	ip      netip.Addr // if key is ""
	limited bool
}

func (l *rateLimiter) identify(r *dunlin.Request) rateClient {
	if l.Key != nil {
		if key := l.Key(r); key != "" {
			return rateClient{hash: maphash.String(l.seed, key), key: key, limited: true}
		}
	}
	ip := r.Remote().Addr()
	if !ip.IsValid() {
		return rateClient{} // a unix socket: only the proxy in front of it knows the client
	}
	return rateClient{hash: l.hashOf(ip), ip: ip, limited: true}
}

func (l *rateLimiter) hashOf(ip netip.Addr) uint64 {
	ip = admission.Network(ip, l.IPv6Prefix)
	if ip.Is4() {
		b := ip.As4()
		return l.hash4(binary.BigEndian.Uint32(b[:]))
	}
	b := ip.As16()
	return maphash.Bytes(l.seed, b[:]) ^ l.seed4[0] // differs from the hash of any key
}

func (l *rateLimiter) hash4(ip uint32) uint64 { return hash4(&l.seed4, ip) }

// hash4 returns a different number for each address.
func hash4(seed *[2]uint64, ip uint32) uint64 {
	h := (uint64(ip) + seed[0]) * seed[1]
	return (h ^ h>>32) * seed[1]
}

// now returns the time of a request, in nanoseconds since the limiter was made. It is never 0, which
// means unknown in a table. The clocks of two loops may differ by a turn, which makes the usage of a
// key a little larger.
func (l *rateLimiter) now(r *dunlin.Request) int64 { return max(int64(ext.Now(r).Sub(l.began)), 0) + 1 }

// judge decides about one request. ok is false if the store is unavailable and Away is
// RateAwayRefuse. It copies the counts of a store on another machine to table, to refuse clients
// without a call of the store, and to count while the store is unavailable.
func (l *rateLimiter) judge(r *dunlin.Request, c *rateClient) (v gcra.Verdict, ok bool) {
	now := l.now(r)
	if l.Store == nil {
		return l.table.Take(c.hash, now), true
	}
	if !l.near {
		if v := l.table.Peek(c.hash, now); !v.Admitted {
			return v, true
		}
	}
	v, err := l.ask(r.Context(), l.storedKey(c))
	if err == nil {
		if !l.near {
			l.table.Record(c.hash, l.now(r), v.Used)
		}
		return v, true
	}
	if !errors.Is(err, context.Canceled) || r.Context().Err() == nil { // otherwise the client has disconnected
		l.warn(err)
	}
	if l.Away == RateAwayRefuse {
		return v, false
	}
	return l.table.Take(c.hash, l.now(r)), true
}

// storedKey returns the key in a store. If the limiter has a Key, addresses have another prefix than
// keys, because a client may have chosen a name that equals an address.
func (l *rateLimiter) storedKey(c *rateClient) string {
	switch {
	case c.key != "":
		return l.prefix + storedKey(c.key)
	case l.Key != nil:
		return "rate-address" + strings.TrimPrefix(l.prefix, "rate") + l.addressKey(c.ip)
	}
	return l.prefix + l.addressKey(c.ip)
}

// addressKey returns the address as a key. For an IPv6 address it returns the network.
func (l *rateLimiter) addressKey(ip netip.Addr) string {
	ip = admission.Network(ip, l.IPv6Prefix)
	if ip.Is4() || ip.IsLinkLocalUnicast() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, l.IPv6Prefix).String()
}

// storedPrefix returns the prefix of a policy's keys in a store. A name with a colon is quoted, and a
// name cannot contain quotes. So no client can choose a key that equals a key of another policy.
func storedPrefix(name string) string {
	if strings.Contains(name, ":") {
		name = `"` + name + `"`
	}
	return "rate:" + name + ":"
}

// maxStoredKey is the maximum length, in bytes, of a key that is stored unchanged.
const maxStoredKey = 64

// storedKey returns a key, or the hash of a long key, because clients choose the length and the store
// has limited room.
func storedKey(key string) string {
	if len(key) <= maxStoredKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + inBase64.EncodeToString(sum[:])
}

// ask makes the store decide. The store counts in microseconds.
func (l *rateLimiter) ask(ctx context.Context, key string) (v gcra.Verdict, err error) {
	err = errors.ErrUnsupported
	if l.quotas != nil {
		v, err = l.quotas.TakeQuota(ctx, key, l.stored)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		v, err = l.compareAndSet(ctx, key)
	}
	return gcra.Verdict{Admitted: v.Admitted, Used: v.Used * 1000, Wait: v.Wait * 1000}, err
}

// maxAttempts is the maximum number of attempts of a compare-and-set. All attempts with their pauses take some 10 ms.
const maxAttempts = 10

// compareAndSet decides about a request with a store that has only values. The value is the theoretical arrival time of the
// generic cell rate algorithm, in microseconds.
func (l *rateLimiter) compareAndSet(ctx context.Context, key string) (gcra.Verdict, error) {
	for attempt := range maxAttempts {
		item, err := l.Store.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return gcra.Verdict{}, err
		}
		var tat int64
		if len(item.Value) == 8 {
			tat = int64(binary.BigEndian.Uint64(item.Value))
		}
		next, v := l.stored.TakeStored(tat, time.Now().UnixMicro())
		if next == tat {
			return v, nil // refused: nothing changes
		}
		var value [8]byte
		binary.BigEndian.PutUint64(value[:], uint64(next))
		_, err = l.Store.Set(ctx, key, value[:], item.Version, time.Duration(v.Used)*time.Microsecond)
		if !errors.Is(err, store.ErrConflict) {
			return v, err
		}
		if err := store.Backoff(ctx, attempt); err != nil {
			return gcra.Verdict{}, err
		}
	}
	return gcra.Verdict{}, fmt.Errorf("%w: other requests have changed the quota during each of %d attempts", store.ErrUnavailable, maxAttempts)
}

func (l *rateLimiter) warn(err error) {
	if n, due := l.away.Note(); due {
		l.Logger.Warn("rate limit: store is unavailable", "policy", l.Name, "error", err, "count", n)
	}
}
