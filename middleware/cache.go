package middleware

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/bits"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/router"
)

// CacheConfig has the settings of a ResponseCache. The zero value of a field stands for its default.
type CacheConfig struct {
	// MaxBytes bounds what is kept: bodies, headers, keys, and what is needed to find them. At the bound, the
	// answers that have not been asked for longest are dropped. Of that, what is being copied on its way to
	// clients may have a quarter, or MaxEntry if that is more. Default: 32 MiB.
	MaxBytes int64

	// App is the app whose actions the cache stands around. With it, what is kept counts in the app's memory
	// budget and is the first to go when clients need room, see [dunlin.App.CacheMemory]; and stale answers
	// are renewed in the background, see StaleWhileRevalidate. Default: none, only MaxBytes bounds the cache.
	App *dunlin.App

	// MaxEntry bounds one answer, in bytes of its body, also one that comes piece by piece. Default: a
	// sixteenth of MaxBytes.
	MaxEntry int

	// StaleWhileRevalidate and StaleIfError are how long an answer that has become stale may be sent while a
	// new one is made, and in place of a 500, 502, 503 or 504, if its own Cache-Control does not say. With
	// App, the new one is made by a request of the cache's own, a copy of the client's that passes all
	// middleware. Without App, and beyond 64 such requests, the client that has found it stale waits.
	// Default: not at all.
	StaleWhileRevalidate, StaleIfError time.Duration

	// Key returns what else an answer depends on besides host, path, query and the fields that Vary names: a
	// tenant, or the client's country. Requests for which it reports false bypass the cache. Default:
	// nothing.
	Key func(*dunlin.Request) (key string, ok bool)

	// Logger gets, at level Warn, the failures for which a stale answer is sent instead. Default:
	// slog.Default().
	Logger *slog.Logger

	// Revalidate also keeps answers that are never fresh and say so (no-cache, max-age=0, a past Expires), if
	// they have an ETag or Last-Modified. The action still runs for each request; it gets If-None-Match and
	// If-Modified-Since for the kept answer, and if it returns 304, the kept one is sent. That saves
	// something where the action is a [Proxy]. Answers that were fresh once are revalidated in any case.
	// Default: such answers are not kept.
	Revalidate bool

	// Heuristic bounds how long an answer counts as fresh that has Last-Modified but does not say how long it
	// is: for a tenth of the time since it was modified (RFC 9111 section 4.2.2), and for this at most. It is
	// for caches in front of servers that others run. Default: such answers are not fresh.
	Heuristic time.Duration

	// Targets are the names of response fields that are addressed to this cache alone, such as
	// CDN-Cache-Control (RFC 9213). The first that is there and well-formed takes the place of Cache-Control
	// and Expires. Default: none.
	Targets []string

	// ObeyClients heeds the Cache-Control of requests: no-cache, no-store, max-age, max-stale, min-fresh,
	// only-if-cached. Clients then decide how often actions run. Default: it is ignored.
	ObeyClients bool
}

// A ResponseCache keeps answers that say that they may be kept, by the rules of RFC 9111 for a shared
// cache, and sends them again without running the action. It is made by NewCache and safe for any number of goroutines.
type ResponseCache struct {
	config CacheConfig
	seed   maphash.Seed
	began  time.Time
	held   atomic.Int64
	memory *dunlin.CacheMemory // nil without a budget
	turn   atomic.Uint32       // which shard is to give up something next

	gathers   cacheGathers // answers that are being copied as they are sent
	refreshes atomic.Int64 // answers that are being made by requests of its own
	counts    cacheCounts
	shards    [cacheShards]cacheShard
}

// CacheStats says how a ResponseCache does.
type CacheStats struct {
	Hits    uint64 `json:"hits"`    // fresh answers that were sent again
	Stale   uint64 `json:"stale"`   // stale ones that were: see StaleWhileRevalidate and StaleIfError
	Misses  uint64 `json:"misses"`  // requests for which the action ran
	Waited  uint64 `json:"waited"`  // that waited for the answer to another, of whatever outcome
	Passed  uint64 `json:"passed"`  // that the cache had nothing to do with
	Stored  uint64 `json:"stored"`  // answers
	Renewed uint64 `json:"renewed"` // answers that an action has said by 304 to be still right; they count as stored, too
	Evicted uint64 `json:"evicted"` // answers that went to make room
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"` // also of what is being copied
}

type cacheCounts struct{ hits, stale, misses, waited, passed, stored, renewed, evicted atomic.Uint64 }

// NewCache returns an empty cache. It panics when a setting is not valid.
func NewCache(c CacheConfig) *ResponseCache {
	if c.MaxBytes == 0 {
		c.MaxBytes = 32 << 20
	}
	if c.MaxEntry == 0 {
		c.MaxEntry = int(min(c.MaxBytes/16, 1<<30))
	}
	c.Logger = patient(c.Logger)
	switch {
	case c.MaxBytes < 0 || c.MaxEntry < 0:
		panic(fmt.Sprintf("middleware: CacheConfig.MaxBytes and MaxEntry (%d, %d) must not be negative", c.MaxBytes, c.MaxEntry))
	case c.StaleWhileRevalidate < 0 || c.StaleIfError < 0 || c.Heuristic < 0:
		panic(fmt.Sprintf("middleware: CacheConfig.StaleWhileRevalidate, StaleIfError and Heuristic (%v, %v, %v) must not be negative", c.StaleWhileRevalidate, c.StaleIfError, c.Heuristic))
	}
	k := &ResponseCache{config: c, seed: maphash.MakeSeed(), began: time.Now()}
	for i := range k.shards {
		k.shards[i].init()
	}
	if c.App != nil {
		k.memory = c.App.CacheMemory(k.shrink)
	}
	return k
}

// Stats returns a snapshot.
func (k *ResponseCache) Stats() CacheStats {
	c := &k.counts
	s := CacheStats{
		Hits: c.hits.Load(), Stale: c.stale.Load(), Misses: c.misses.Load(), Waited: c.waited.Load(), Passed: c.passed.Load(),
		Stored: c.stored.Load(), Renewed: c.renewed.Load(), Evicted: c.evicted.Load(), Bytes: k.held.Load(),
	}
	for i := range k.shards {
		s.Entries += k.shards[i].count()
	}
	return s
}

// Middleware returns the middleware that answers from the cache. It stands around actions whose answers say
// Cache-Control ([dunlin.Response.CachePublic]): behind what adds to each answer, such as RequestID and RateLimit,
// whose headers would be kept, and behind Compress, or outside of it with Vary as Compress sets it.
//
// Kept are answers to GET without a body, and without a Connection that names fields to remove, that say for how long they are fresh, and neither set a cookie nor are for one client
// alone. Requests with Authorization, cookies or a client certificate, those that [BasicAuth] or [KeyAuth] has let pass, and those
// whose session was asked for, also by the action, share only what says public or s-maxage, also where middleware in front has taken the
// credentials out. An answer is found by scheme, host, path (as it was spelt, with the question mark of an empty query, and also the one that was sent, see [dunlin.App.Rewrite]), query, CacheConfig.Key and the request fields that its Vary names; requests that say X-Forwarded-Host
// or another field by which a proxy may change what a request means do not share with those that do not.
//
// What is made when it is sent, a stream, a file, or what a [Proxy] answers at length, passes on to its client as it comes, and is copied on the
// way: it is kept once it has come to its end, if it is no longer than MaxEntry and there was room for the copy. What breaks off, or whose
// client leaves before the end, is not kept; nor is what has trailers.
//
// Of many requests that miss the same answer one runs the action, and the others wait for it: until it is there in whole, but no longer than half a
// second once its action has returned, since its client may be slow. Then one of them is the next to run the action; after three such
// waits a request runs it on its own. Where an answer has turned out not to be
// one to keep, nobody waits for the next minute. A stale answer is sent, where it
// may be, while a new one is made: see CacheConfig.StaleWhileRevalidate.
//
// A request with another method that was carried out removes the answer to its own URL
// (RFC 9111 section 4.4). Answers have Age and Cache-Status (RFC 9211).
func (k *ResponseCache) Middleware() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			switch m := r.Method(); m {
			case http.MethodGet, http.MethodHead:
				return k.serve(r, next)
			default:
				return k.change(r, m, next)
			}
		}
	}
}

// change passes a request on that is not to be answered from the cache, and forgets what it may have changed.
func (k *ResponseCache) change(r *dunlin.Request, method string, next dunlin.Action) dunlin.Response {
	k.counts.passed.Add(1)
	resp := next(r)
	if status := resp.StatusCode(); method == http.MethodOptions || method == http.MethodTrace || status >= 400 {
		return resp
	}
	k.Invalidate(r.Host(), r.Path(), r.RawQuery())
	for _, name := range [...]string{"Location", "Content-Location"} {
		if ref := resp.Get(name); ref != "" {
			k.forget(r, ref)
		}
	}
	return resp
}

// forget forgets the answers to the URL that a reference stands for in the answer to r, if it is one of the same host.
func (k *ResponseCache) forget(r *dunlin.Request, ref string) {
	base, err := url.Parse("http://" + r.Host() + escapePath(r.Path()))
	if err != nil {
		return
	}
	loc, err := base.Parse(ref)
	if err != nil || loc.Path == "" || !strings.EqualFold(loc.Host, base.Host) {
		return
	}
	if path, err := router.Canonical(nil, loc.EscapedPath()); err == nil {
		k.Invalidate(r.Host(), string(path), loc.RawQuery)
	}
}

// Invalidate forgets all answers to a URL, by http and https: host as in the Host field, path as Request.Path has it. Those that are being
// made at this moment are not stored either.
func (k *ResponseCache) Invalidate(host, path, query string) {
	base := k.baseHash(host, path, query)
	s := k.shard(base)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epochs[epochOf(base)]++
	for e := range s.all() {
		if e.key.base == base {
			k.drop(s, e)
		}
	}
}

// Clear forgets everything.
func (k *ResponseCache) Clear() {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		for n := range s.epochs {
			s.epochs[n]++
		}
		for e := range s.all() {
			k.drop(s, e)
		}
		s.mu.Unlock()
	}
}

// rerouting are request fields by which proxies and frameworks change what a request means, and which no
// Vary names, since nobody thinks of them: an answer that somebody has got by them is not for others.
var rerouting = [...]string{
	"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Host",
	"X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "X-Forwarded-Scheme", "X-Forwarded-Ssl", "X-Forwarded-Path",
	"X-Original-Host", "X-Http-Host-Override", "X-Http-Method", "X-Method-Override", "X-Forwarded-Uri", "X-Forwarded-Method",
	"X-Forwarded-Protocol", "X-Original-Uri", "X-Original-Method", "X-Envoy-Original-Path", "X-Url-Scheme", "Front-End-Https", forwardedField,
}

// The fields that the cache looks at beside these, and their bits among keyNames.
const (
	withConnection uint64 = 1 << (len(rerouting) + iota)
	withAuthorization
	withCookie

	reroutingFields = withConnection - 1
)

var keyNames = exchange.NewNames(append(rerouting[:], "Connection", "Authorization", "Cookie")...)

// namesFields reports whether a Connection field names fields that a [Proxy] removes beside those that it always removes. The answer
// was made without them, though a Vary that names them would find it by what the client has sent.
func namesFields(connection string) bool {
	for option := range strings.SplitSeq(connection, ",") {
		option = strings.Trim(option, " \t")
		if option != "" && !usualOption(option) {
			return true
		}
	}
	return false
}

// forwardedField is the field of RFC 7239, of which those parts reroute that do not say whom a request is from.
const forwardedField = "Forwarded"

// reroutes returns what a field that reroutes has that does.
func reroutes(name, value string) string {
	if name != forwardedField || value == "" {
		return value
	}
	var b strings.Builder // untouched for a field that only says whom
	for pair := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || c == ';' }) {
		pair = strings.Trim(pair, " \t")
		if who, _, _ := strings.Cut(pair, "="); !isField(who, "for", "by") {
			b.WriteString(pair)
			b.WriteByte(';')
		}
	}
	return b.String()
}

// rerouted returns what a request has of fields that reroute: names in order and values with their lengths, so that of no other fields
// the same is made.
func rerouted(r *dunlin.Request, set uint64) string {
	var room [256]byte
	all := room[:0]
	for ; set != 0; set &= set - 1 {
		name := rerouting[bits.TrailingZeros64(set)]
		if v := reroutes(name, view.String(r.HeaderBytes(name))); v != "" {
			all = append(strconv.AppendInt(append(all, name...), int64(len(v)), 10), ':')
			all = append(all, v...)
		}
	}
	return string(all)
}

// secureMix tells the hashes of https from those of http.
const secureMix = 0x9e3779b97f4a7c15

// A cacheKey is what chooses an answer, but for Vary.
type cacheKey struct {
	base              uint64 // hash of host, path and query, which also chooses the shard, of either scheme
	hash              uint64 // of everything
	host, path, query string
	sent              string // the path that was sent, where it was rewritten
	spelt             string // the path with its escapes, if it has some, and an empty query
	secure            bool   // the scheme is https
	extra             string // CacheConfig.Key
	rerouted          string // fields that reroute, each with its length
}

func (k *ResponseCache) baseHash(host, path, query string) uint64 {
	const odd = 0x9e3779b97f4a7c15 // so that places are not the same
	return (maphash.String(k.seed, host)*odd+maphash.String(k.seed, path))*odd + maphash.String(k.seed, query)
}

// writeParts writes strings so that no others are the same.
func writeParts(h *maphash.Hash, parts ...string) {
	for _, s := range parts {
		_ = h.WriteByte(byte(len(s))) // a hash takes everything
		_ = h.WriteByte(byte(len(s) >> 8))
		_, _ = h.WriteString(s)
	}
}

// keyOf fills in the key of a request, and reports whether the cache is for it: what a body has chosen is not for others, nor is what was
// made without fields that the client had removed on the way. seen are those of keyNames that may be there.
func (k *ResponseCache) keyOf(r *dunlin.Request, key *cacheKey) (seen uint64, ok bool) {
	if r.ContentLength() != 0 {
		return 0, false
	}
	key.host, key.path, key.query = r.Host(), r.Path(), r.RawQuery()
	key.base = k.baseHash(key.host, key.path, key.query)
	if key.hash = key.base; r.Secure() {
		key.secure = true
		key.hash ^= secureMix
	}
	seen = inside.Among(r, keyNames)
	if seen&withConnection != 0 {
		if namesFields(view.String(r.HeaderBytes("Connection"))) {
			return seen, false
		}
	}
	if fields := seen & reroutingFields; fields != 0 {
		key.rerouted = rerouted(r, fields)
	}
	if sent := r.SentPath(); sent != key.path {
		key.sent = sent // the action may say it
		if strings.HasSuffix(inside.Spelling(r), "?") {
			key.spelt = "?"
		}
	} else {
		key.spelt = inside.Spelling(r) // a standard handler, and the server behind a Proxy, sees it: /a%3Bb is not /a;b, nor is /a? /a
	}
	if k.config.Key != nil {
		extra, ok := k.config.Key(r)
		if !ok {
			return 0, false
		}
		key.extra = extra
	}
	if key.rerouted != "" || key.sent != "" || key.spelt != "" || key.extra != "" {
		key.hash ^= k.seldomHash(key)
	}
	return seen, true
}

// seldomHash is that of what few requests have.
func (k *ResponseCache) seldomHash(key *cacheKey) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	writeParts(&h, key.sent, key.spelt, key.extra, key.rerouted)
	return h.Sum64()
}

// serve answers a GET or HEAD.
func (k *ResponseCache) serve(r *dunlin.Request, next dunlin.Action) dunlin.Response {
	var key cacheKey
	part := r.Method() == http.MethodGet && r.HeaderList("Range") != ""
	seen, ok := k.keyOf(r, &key)
	if !ok {
		k.counts.passed.Add(1)
		return next(r)
	}
	with := inside.Credentials(r, 0, seen&(withAuthorization|withCookie) != 0)
	req := httpcache.Request{Authorized: with&exchange.Authorized != 0, Identified: with&(exchange.WithCookies|exchange.Identified) != 0}
	var asked *httpcache.Directives
	if k.config.ObeyClients {
		if cc := r.HeaderList("Cache-Control"); cc != "" {
			d := httpcache.ParseDirectives(cc)
			asked, req.NoStore = &d, d.NoStore
		}
	}
	if f := k.refreshing(r); f != nil {
		if !f.stale.key.same(&key) { // the app takes it for another request now
			return k.make(r, &key, req, nil, nil, next)
		}
		return k.make(r, &key, req, f.stale, f, next)
	}
	if part {
		return k.servePart(r, &key, req, asked, next)
	}
	for waited := 0; ; waited++ {
		e, f, leads := k.look(r, &key, req, asked)
		switch {
		case e != nil && !leads:
			return k.send(r, e)
		case e != nil && f != nil && k.now() < e.staleUntil && (asked == nil || asked.Accepts(k.now()-e.born, e.freshUntil-e.born)) && k.refresh(r, &key, f):
			return k.send(r, e)
		case f == nil || leads:
			if asked != nil && asked.OnlyIfCached {
				k.finish(&key, f)
				return notInCache()
			}
			return k.make(r, &key, req, e, f, next)
		case waited == mostWaits:
			return k.make(r, &key, req, nil, nil, next)
		}
		k.counts.waited.Add(1)
		if err := f.wait(r.Context()); err != nil {
			return dunlin.Error(err)
		}
	}
}

// notInCache answers who wants nothing but what is kept.
func notInCache() dunlin.Response {
	return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusGatewayTimeout, Detail: "the answer is not in the cache"})
}

// mostWaits is for how many answers to others a request waits that turn out to be none for it: failures, or of
// another variant.
const mostWaits = 3

// make runs the action and stores its answer if it may be. A flight that it leads ends with it; stale is what may be
// sent instead of an error, and what the action is asked about.
func (k *ResponseCache) make(r *dunlin.Request, key *cacheKey, req httpcache.Request, stale *cacheEntry, f *cacheFlight, next dunlin.Action) dunlin.Response {
	passedOn := false // the flight, which ends with the copy
	defer func() {
		if !passedOn {
			k.finish(key, f)
		}
	}()
	k.counts.misses.Add(1)
	epoch := k.epoch(key)
	resp, asked := k.ask(r, stale, next)
	if asked && resp.StatusCode() == http.StatusNotModified {
		if resp, ok := k.renew(r, key, req, stale, resp, epoch); ok {
			return resp
		}
		resp = r.WithHeaders(unconditional, next) // it is about another answer than what is kept
	}
	if stale != nil && isFailure(resp.StatusCode()) && k.now() < stale.errorUntil {
		k.counts.stale.Add(1)
		k.config.Logger.Warn("a stale answer is sent instead of an error", "status", resp.StatusCode(), "error", resp.Err(), "route", r.Route(), "id", r.ID())
		return stale.response(k.now(), cacheStatusStale)
	}
	if r.Method() != http.MethodGet {
		return resp
	}
	if resp.Len() < 0 && !(asked && resp.StatusCode() == http.StatusOK && holds(r, resp.Get(etag), resp.Get("Last-Modified"))) {
		if resp, passedOn = k.gather(r, key, req, stale, f, resp, epoch); passedOn {
			return resp
		}
	}
	var e *cacheEntry
	if k.mayKeep(resp) {
		e = k.newEntry(r, key, req, draftOf(resp), resp.Get("Age"))
	}
	if e == nil && stale != nil && k.supersedes(draftOf(resp)) {
		k.discard(stale)
	}
	lasting := resp.StatusCode() < http.StatusInternalServerError && r.Context().Err() == nil
	if k.store(key, req, e, epoch, lasting) {
		resp = resp.Header("Cache-Status", cacheStatusStored)
	}
	if asked && resp.StatusCode() == http.StatusOK && holds(r, resp.Get(etag), resp.Get("Last-Modified")) {
		return resp.Status(http.StatusNotModified) // the action has not seen what the client asked
	}
	return resp
}

// send answers with an entry, or 304 if the client has the same.
func (k *ResponseCache) send(r *dunlin.Request, e *cacheEntry) dunlin.Response {
	now, status := k.at(r), cacheStatusHit
	if now < e.freshUntil {
		k.counts.hits.Add(1)
	} else {
		k.counts.stale.Add(1)
		status = cacheStatusStale
	}
	return e.answer(r, now, status)
}

func isFailure(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// now is the time since the cache was made.
func (k *ResponseCache) now() time.Duration { return time.Since(k.began) }

// at is about now, for what is only looked at.
func (k *ResponseCache) at(r *dunlin.Request) time.Duration { return max(r.Now().Sub(k.began), 0) }

// A cacheFlight is an action that is running for all who miss its answer.
type cacheFlight struct {
	id    uint64
	done  chan struct{}
	once  sync.Once   // for its end
	stale *cacheEntry // what there is, or nil
	own   bool        // a request of the cache's own leads it, which no client slows down
}

// wait waits for the end of the flight.
func (f *cacheFlight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// statuses for the field Cache-Status (RFC 9211).
const (
	cacheStatusHit     = "Dunlin; hit"
	cacheStatusStale   = "Dunlin; hit; detail=stale"
	cacheStatusMiss    = "Dunlin; fwd=miss"
	cacheStatusStored  = "Dunlin; fwd=miss; stored"
	cacheStatusRenewed = "Dunlin; fwd=stale; fwd-status=304"
)

// leaveOut reports whether a field is not kept with an answer: it is about one client or one moment.
func leaveOut(name string) bool {
	return isField(name, "Age", "Cache-Status", "Ratelimit", "Ratelimit-Policy", "Idempotent-Replayed") || strings.HasPrefix(name, "Proxy-")
}
