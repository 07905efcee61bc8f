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
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/store"
)

// Rate says how many requests a client may make. Limit and Window must be given; the zero value of
// the other fields stands for their default.
type Rate struct {
	// Limit is the quota: requests in each Window, in the long run. Together at most a million a second.
	Limit  int
	Window time.Duration

	// Burst is how many requests may come at once when a client has made none for a while. After
	// them it gets one back each Window/Limit. Default: Limit.
	Burst int

	// Key returns the client that a request counts for, such as [User]. It must be one that the client has proved to be: a header
	// that nothing has checked gives a client as many quotas as it makes up values. A request for which Key returns "" counts for
	// the client's address. Default: the client's address, see [dunlin.Request.Remote].
	Key func(*dunlin.Request) string

	// IPv6Prefix is the number of first bits of an IPv6 address that count as one client. Providers give a customer 48 to
	// 64 of them to fill. Default: 64.
	IPv6Prefix int

	// Name is the policy's in the fields that are sent, and that of its keys in Store: limits that share a store
	// need different names. Default: "default".
	Name string

	// Store counts for several machines together. Default: each process counts for itself, in memory
	// that costs 64 bytes a key at most, as those of a store.Memory do.
	Store store.Store

	// Away says what becomes of requests while Store does not answer. Default: LimitLocally.
	Away RateAway

	// MaxKeys bounds how many keys are remembered in memory. At the bound, those that have used
	// least are forgotten first. Default: 262144, 16 MiB at most.
	MaxKeys int

	// Logger is told, at level Warn and once a second at most, that Store does not answer. Default: slog.Default().
	Logger *slog.Logger
}

// RateAway says what RateLimit does while its store does not answer.
type RateAway uint8

const (
	// LimitLocally goes on with what this process knows of its own clients: each of several machines
	// admits the limit.
	LimitLocally RateAway = iota
	// RefuseRequests answers 503 with Retry-After.
	RefuseRequests
)

// RateLimit answers 429 Too Many Requests to clients that make too many, before their bodies are read and
// before what stands behind it runs. It counts by the generic cell rate algorithm: the quota comes back
// evenly, with no window at whose edge twice as much could pass.
//
// The fields RateLimit-Policy and RateLimit of each answer say what the limit is, how much is left (r), and
// in how many seconds all of it will be (t), as in draft-ietf-httpapi-ratelimit-headers-11. Numbers above 512
// are rounded in the direction that promises less. A refusal also has Retry-After, and is a problem of the
// type quota-exceeded. Of several limits around an action each adds its own.
//
// With a Store, all processes count together, by the store's clock and in one atomic step. Clients that this
// process knows to be over their limit are refused without a call to a store on another machine. A call to
// the store can fail or hang: give one that store.Guard bounds.
//
// Put it before middleware that costs more than the check. It differs from [dunlin.Route.LimitBy], which
// bounds how many requests are served at the same time. RateLimit panics when a setting is not valid.
func RateLimit(rate Rate) dunlin.Middleware {
	l := newRateLimiter(rate)
	if l.Key == nil && l.Store == nil { // all there is to it
		return l.byAddress
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			c := l.identify(r)
			if !c.limited {
				return next(r)
			}
			v, ok := l.judge(r, &c)
			if !ok {
				return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "rates cannot be limited at the moment"}).
					Header("Retry-After", "1")
			}
			if !v.Admitted {
				return l.fields.refusal(v)
			}
			return l.fields.add(next(r), v)
		}
	}
}

// byAddress limits by addresses, in memory.
func (l *rateLimiter) byAddress(next dunlin.Action) dunlin.Action {
	return around(next, edgeParts{rate: l})
}

// take judges a request by its address, in memory.
func (l *rateLimiter) take(r *dunlin.Request) (v gcra.Verdict, limited bool) {
	ip, hash := r.Remote().Addr(), uint64(0)
	switch {
	case ip.Is4(): // as most are
		b := ip.As4()
		hash = l.hash4(binary.BigEndian.Uint32(b[:]))
	case !ip.IsValid():
		return v, false // a unix socket: what stands in front knows who it is
	default:
		hash = l.hashOf(ip)
	}
	return l.table.Take(hash, l.now(r)), true
}

// A quickLimit is what most requests need of a rateLimiter that limits by address, in memory.
type quickLimit struct {
	table    *gcra.Table
	seed4    [2]uint64
	began    int64 // as of exchange.Nanos
	interval int64
	little   uint64              // see rateFields
	least    *dunlin.HeaderBlock // likewise, RateLimit alone
	fields   *rateFields
}

func (l *rateLimiter) quick() quickLimit {
	return quickLimit{l.table, l.seed4, exchange.Nanos(l.began), l.fields.rate.Interval, l.fields.little, l.fields.least.limit, l.fields}
}

// take judges a request by its address, an IPv4 one, at a time as of exchange.Nanos.
func (q *quickLimit) take(ip uint32, now int64) gcra.Verdict {
	return q.table.Take(hash4(&q.seed4, ip), max(now-q.began, 0)+1)
}

// limit returns the field RateLimit of an answer to a request that was admitted.
func (q *quickLimit) limit(v gcra.Verdict) *dunlin.HeaderBlock {
	if uint64(v.Used-q.interval) <= q.little { // most have used next to nothing
		return q.least
	}
	return q.fields.find(v.Used).limit
}

// A rateLimiter is what RateLimit shares among the routes it is put around.
type rateLimiter struct {
	// What most requests need lies together.
	table  *gcra.Table
	fields *rateFields
	began  time.Time
	seed4  [2]uint64 // for addresses of IPv4

	seed   maphash.Seed
	args   store.Args
	near   bool // Store is in this process: it is asked at once, and what it knows is not kept here, too
	prefix string
	away   logqueue.Repeated
	Rate
}

func newRateLimiter(rate Rate) *rateLimiter {
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
		interval = inMicros * 1000 // the same here as there
	}
	if s, ok := rate.Store.(interface{ Prompt() store.Store }); ok && rate.Away == LimitLocally {
		rate.Store = s.Prompt() // it can count here while nobody answers there
	}
	_, near := rate.Store.(*store.Memory)
	inNanos := gcra.Rate{Interval: interval, Tolerance: interval * int64(rate.Burst)}
	return &rateLimiter{
		Rate:   rate,
		table:  gcra.NewTable(inNanos, rate.MaxKeys),
		args:   store.Args{inMicros, inMicros * int64(rate.Burst)},
		near:   near,
		fields: newRateFields(&rate, inNanos),
		prefix: storedPrefix(rate.Name),
		seed:   maphash.MakeSeed(),
		began:  time.Now(),
		seed4:  [2]uint64{rand.Uint64(), rand.Uint64() | 1},
	}
}

// validate names the first setting that is not valid.
func (rate *Rate) validate() error {
	const longest = 365 * 24 * time.Hour
	switch {
	case rate.Limit < 1:
		return fmt.Errorf("Rate.Limit is %d: it must let at least one request pass", rate.Limit)
	case rate.Window <= 0 || rate.Window > longest:
		return fmt.Errorf("Rate.Window is %v: it must be positive, and at most a year", rate.Window)
	case rate.Window/time.Duration(rate.Limit) < time.Microsecond:
		return fmt.Errorf("%d requests in %v are more than a million a second", rate.Limit, rate.Window)
	case rate.Burst < 1:
		return fmt.Errorf("Rate.Burst is %d: it must not be negative", rate.Burst)
	case int64(rate.Burst) > int64(10*longest)/(int64(rate.Window)/int64(rate.Limit)):
		return fmt.Errorf("Rate.Burst is %d: that is the quota of more than ten years", rate.Burst)
	case rate.MaxKeys < 1:
		return fmt.Errorf("Rate.MaxKeys is %d: it must not be negative", rate.MaxKeys)
	case rate.IPv6Prefix < 1 || rate.IPv6Prefix > 128:
		return fmt.Errorf("Rate.IPv6Prefix is %d: it must be from 1 to 128", rate.IPv6Prefix)
	case rate.Away > RefuseRequests:
		return fmt.Errorf("Rate.Away is %d: it must be LimitLocally or RefuseRequests", rate.Away)
	}
	for _, c := range []byte(rate.Name) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return fmt.Errorf("Rate.Name is %q: it must be visible ASCII without quotes and backslashes", rate.Name)
		}
	}
	return nil
}

// A rateClient is the client that a request counts for.
type rateClient struct {
	hash    uint64
	key     string     // of Key; "" for an address
	ip      netip.Addr // where key is ""
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
		return rateClient{} // a unix socket: the proxy in front of it knows the client
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
	return maphash.Bytes(l.seed, b[:]) ^ l.seed4[0] // no key has the same
}

func (l *rateLimiter) hash4(ip uint32) uint64 { return hash4(&l.seed4, ip) }

// hash4 is another number for each address.
func hash4(seed *[2]uint64, ip uint32) uint64 {
	h := (uint64(ip) + seed[0]) * seed[1]
	return (h ^ h>>32) * seed[1]
}

// now is never 0, which a table takes for unknown. Of two loops one may be behind by a turn, in which a key has used a little more then.
func (l *rateLimiter) now(r *dunlin.Request) int64 { return max(int64(r.Now().Sub(l.began)), 0) + 1 }

// judge decides about one request; it is not ok when nobody can say.
func (l *rateLimiter) judge(r *dunlin.Request, c *rateClient) (v gcra.Verdict, ok bool) {
	now := l.now(r)
	if l.Store == nil {
		return l.table.Take(c.hash, now), true
	}
	if !l.near {
		if v := l.table.Look(c.hash, now); !v.Admitted {
			return v, true
		}
	}
	v, err := l.ask(r.Context(), l.storedKey(c))
	if err == nil {
		if !l.near {
			l.table.Note(c.hash, l.now(r), v.Used) // for when the store does not answer, and to refuse without asking it
		}
		return v, true
	}
	if !errors.Is(err, context.Canceled) || r.Context().Err() == nil { // else the client has left: that says nothing of the store
		l.warn(err)
	}
	if l.Away == RefuseRequests {
		return v, false
	}
	return l.table.Take(c.hash, l.now(r)), true
}

// storedKey returns the key in a store. Where some requests count for a key and others for an address, those of addresses
// have a prefix of their own: a client may have chosen a name that reads like an address.
func (l *rateLimiter) storedKey(c *rateClient) string {
	switch {
	case c.key != "":
		return l.prefix + storedKey(c.key)
	case l.Key != nil:
		return "rate-address" + strings.TrimPrefix(l.prefix, "rate") + l.addressKey(c.ip)
	}
	return l.prefix + l.addressKey(c.ip)
}

// addressKey is the address as a key, of IPv6 the network.
func (l *rateLimiter) addressKey(ip netip.Addr) string {
	ip = admission.Network(ip, l.IPv6Prefix)
	if ip.Is4() || ip.IsLinkLocalUnicast() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, l.IPv6Prefix).String()
}

// takeScript is gcra.Rate.Take for a store: args are interval and tolerance in microseconds. It returns
// how much is used after the request, or -1 less what is used when it is refused.
//
// A clock that is set back, or that of a replica that has taken over, may be hours behind what is kept, and the limit may have been
// made smaller: more than all of it is never used.
var takeScript = &store.Script{
	Name: "rate limit",
	Go: func(now, state int64, a *store.Args) (int64, time.Duration, int64) {
		keep := store.KeepTTL
		if most := now + a[1]; state > most {
			state, keep = most, time.Duration(a[1])*time.Microsecond
		}
		tat, v := gcra.Rate{Interval: a[0], Tolerance: a[1]}.Take(state, now)
		if !v.Admitted {
			return tat, keep, -1 - v.Used
		}
		return tat, time.Duration(v.Used) * time.Microsecond, v.Used
	},
	Lua: `if state > now + a2 then
  state = now + a2
  keep = a2
end
local used = math.max(state - now, 0)
if used + a1 <= a2 then
  state = now + used + a1
  keep = used + a1
  result = keep
else
  result = -1 - used
end`,
}

// storedPrefix stands before the keys of a policy in a store. A name with a colon is quoted, which no name can be itself: no key of
// another policy, which a client may have chosen, becomes the same.
func storedPrefix(name string) string {
	if strings.Contains(name, ":") {
		name = `"` + name + `"`
	}
	return "rate:" + name + ":"
}

// mostStoredKey is the longest key, in bytes, that is kept in a store as it is.
const mostStoredKey = 64

// storedKey is what stands for a key in a store: for a long one a hash, since clients choose how long theirs are, and the store has
// room for so much, which others need, too.
func storedKey(key string) string {
	if len(key) <= mostStoredKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + inBase64.EncodeToString(sum[:])
}

// ask has the store decide. Times are in microseconds there.
func (l *rateLimiter) ask(ctx context.Context, key string) (gcra.Verdict, error) {
	n, err := l.Store.Run(ctx, key, takeScript, l.args)
	switch {
	case err != nil:
		return gcra.Verdict{}, err
	case n >= 0:
		return gcra.Verdict{Admitted: true, Used: n * 1000}, nil
	}
	used := -1 - n
	return gcra.Verdict{Used: used * 1000, Wait: max(used+l.args[0]-l.args[1], 1) * 1000}, nil
}

func (l *rateLimiter) warn(err error) {
	if n, due := l.away.Note(); due {
		l.Logger.Warn("the store of a rate limit does not answer", "policy", l.Name, "error", err, "count", n)
	}
}
