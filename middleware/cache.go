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
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/router"
)

// CacheConfig has the settings of a [ResponseCache]. A zero field selects its documented default.
type CacheConfig struct {
	// MaxBytes limits the memory of the cache, in bytes: bodies, headers, keys and overhead. At the
	// limit, the least recently used responses are evicted. Copies of responses that are still being
	// sent may use a quarter of MaxBytes, or MaxEntry if that is more. Default: 32 MiB.
	MaxBytes int64

	// App is the app whose actions the cache serves. With App, stored responses count in the app's
	// memory budget and are evicted first when clients need room, see [ext.CacheBudget]. Stale
	// responses are then revalidated in the background, see StaleWhileRevalidate. Default: nil; only
	// MaxBytes limits the cache.
	App *dunlin.App

	// MaxEntry limits the body of one response, streamed or not, in bytes. Default: a sixteenth of
	// MaxBytes.
	MaxEntry int

	// StaleWhileRevalidate is the time for which a stale response may be sent while it is revalidated. StaleIfError is the time for
	// which a stale response may be sent instead of a 500, 502, 503 or 504. They apply to responses whose Cache-Control does not
	// state such a time. With App, the cache revalidates by its own request: a copy of the client's request that passes all
	// middleware. Without App, or with 64 such requests in progress, the client that found the response stale waits. Default: 0.
	StaleWhileRevalidate, StaleIfError time.Duration

	// Key returns a further part of the cache key, such as a tenant or the client's country, in
	// addition to scheme, host, path, query and the fields that Vary names. If Key reports false, the
	// request bypasses the cache. Default: no further part.
	Key func(*dunlin.Request) (key string, ok bool)

	// Logger logs, at level Warn, each failure for which a stale response is sent. Default:
	// slog.Default().
	Logger *slog.Logger

	// Revalidate also stores responses that are never fresh (no-cache, max-age=0, a past Expires), if
	// they have an ETag or Last-Modified. The action still runs for each request, with If-None-Match
	// and If-Modified-Since for the stored response. If it returns 304, the cache sends the stored
	// response. This saves work if the action is a [Proxy]. Responses that were fresh are revalidated
	// in any case. Default: responses that are never fresh are not stored.
	Revalidate bool

	// Heuristic limits the estimated freshness lifetime of responses that have Last-Modified but
	// state no lifetime. The estimate is a tenth of the time since Last-Modified (RFC 9111 section
	// 4.2.2). Use it for responses of upstream servers. Default: such responses are stale.
	Heuristic time.Duration

	// Targets names response fields that are addressed to this cache, such as CDN-Cache-Control
	// (RFC 9213). The first field that is present and well-formed replaces Cache-Control and Expires.
	// Default: none.
	Targets []string

	// ObeyClients obeys the Cache-Control of requests: no-cache, no-store, max-age, max-stale,
	// min-fresh, only-if-cached. Any client can then force actions to run. Default: the field is ignored.
	ObeyClients bool
}

// A ResponseCache stores cacheable responses by the rules of RFC 9111 for a shared cache. It
// answers cache hits without running the action. NewCache makes one. It is safe for concurrent use.
type ResponseCache struct {
	config    CacheConfig
	seed      maphash.Seed
	began     time.Time
	held      atomic.Int64
	memory    *ext.CacheMemory // nil without a budget
	nextShard atomic.Uint32    // the shard that evicts next

	gathers   cacheGathers // copies in progress
	refreshes atomic.Int64 // the cache's own revalidation requests in progress
	counts    cacheCounts
	shards    [cacheShards]cacheShard
}

// CacheStats has the counters of a ResponseCache.
type CacheStats struct {
	Hits    uint64 `json:"hits"`    // fresh responses sent from the cache
	Stale   uint64 `json:"stale"`   // stale responses sent: see StaleWhileRevalidate and StaleIfError
	Misses  uint64 `json:"misses"`  // requests for which the action ran
	Waited  uint64 `json:"waited"`  // waits of requests for the response to another request, with any outcome
	Passed  uint64 `json:"passed"`  // requests that bypassed the cache
	Stored  uint64 `json:"stored"`  // responses stored
	Renewed uint64 `json:"renewed"` // responses renewed by a 304 of the action; renewed responses count in Stored, too
	Evicted uint64 `json:"evicted"` // responses evicted to make room
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"` // includes copies in progress
}

type cacheCounts struct{ hits, stale, misses, waited, passed, stored, renewed, evicted atomic.Uint64 }

// NewCache returns an empty cache. It panics for an invalid setting.
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
		k.memory = ext.CacheBudget(c.App)(k.shrink)
	}
	return k
}

// Stats returns a snapshot of the counters.
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

// Middleware returns the middleware that answers requests from the cache. Use it for actions whose
// responses have Cache-Control ([dunlin.Response.CachePublic]). Put it after middleware that adds
// headers of one request to responses, such as RequestID and RateLimit, so that these headers are not
// stored. Before [Compress], the cache stores compressed variants by Vary. After Compress, each cache
// hit is compressed again.
//
// The cache stores responses to GET that state a freshness lifetime, set no cookie and are not
// private. A request with a body, or with a Connection that names fields to remove, bypasses the
// cache. A request identifies its client by Authorization, cookies, a client certificate,
// [BasicAuth] or [KeyAuth] before the cache, or a session that the action or middleware before the
// cache has read. The cache stores the response to such a request, and answers such a request, only
// if the response has public or s-maxage. This also holds if earlier middleware has removed the
// credentials.
//
// The cache key consists of scheme, host, path, query, CacheConfig.Key and the request fields that
// Vary names. The key has the path in the client's spelling, with the question mark of an empty
// query, and the original path if [dunlin.App.Rewrite] has changed it. A request with
// X-Forwarded-Host, or with another field by which a proxy may change the meaning of a request, does
// not share responses with requests without the field.
//
// A streamed response (a stream, a file, a long response of a [Proxy]) is copied while it is sent.
// The copy is stored when the response is complete, if it is not larger than MaxEntry and the cache
// had room for it. A response is not stored if it is cut off, if its client disconnects before the
// end, or if it has trailers.
//
// When many requests miss the same response, one request runs the action and the others wait. They
// wait at most half a second after the action has returned, because the client of its request may be
// slow. Then one of the waiting requests runs the action. After three waits a request runs the action
// by itself. If a response is not cacheable, requests for it do not wait for each other for a minute.
// A stale response may be sent while a new response is made: see CacheConfig.StaleWhileRevalidate.
//
// A successful request with a method other than GET and HEAD removes the stored responses to its URL
// (RFC 9111 section 4.4). Responses have Age and Cache-Status (RFC 9211).
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

// change runs the action for a request whose method is not GET or HEAD, and invalidates the stored
// responses that the request may have changed.
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

// forget invalidates the responses to the URL ref, which the response to r refers to, if ref has the
// host of r.
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

// Invalidate removes all responses to a URL, by http and https. host has the form of the Host field,
// and path the form of Request.Path. A response whose action is running at that time is not stored.
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

// Clear removes all responses. A response whose action is running at that time is not stored.
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

// rerouting has the request fields by which proxies and frameworks change the meaning of a request.
// Vary usually does not name them, so they are part of the key, to prevent cache poisoning.
var rerouting = [...]string{
	"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Host",
	"X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "X-Forwarded-Scheme", "X-Forwarded-Ssl", "X-Forwarded-Path",
	"X-Original-Host", "X-Http-Host-Override", "X-Http-Method", "X-Method-Override", "X-Forwarded-Uri", "X-Forwarded-Method",
	"X-Forwarded-Protocol", "X-Original-Uri", "X-Original-Method", "X-Envoy-Original-Path", "X-Url-Scheme", "Front-End-Https", forwardedField,
}

// These are the bits of the fields that keyNames has after those of rerouting.
const (
	withConnection uint64 = 1 << (len(rerouting) + iota)
	withAuthorization
	withCookie

	reroutingFields = withConnection - 1
)

var keyNames = exchange.NewNames(append(rerouting[:], "Connection", "Authorization", "Cookie")...)

// namesFields reports whether a Connection field names fields that a [Proxy] removes in addition to
// the usual fields. Then the response is made without these fields, but Vary would select it by the
// values that the client sent.
func namesFields(connection string) bool {
	for option := range strings.SplitSeq(connection, ",") {
		option = strings.Trim(option, " \t")
		if option != "" && !usualOption(option) {
			return true
		}
	}
	return false
}

// forwardedField is the field of RFC 7239. Its parameters «for» and «by» do not reroute a request; all
// other parameters do.
const forwardedField = "Forwarded"

// reroutes returns the part of a field's value that reroutes the request.
func reroutes(name, value string) string {
	if name != forwardedField || value == "" {
		return value
	}
	var b strings.Builder // stays empty for a field with only the parameters for and by
	for pair := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || c == ';' }) {
		pair = strings.Trim(pair, " \t")
		if who, _, _ := strings.Cut(pair, "="); !isField(who, "for", "by") {
			b.WriteString(pair)
			b.WriteByte(';')
		}
	}
	return b.String()
}

// rerouted returns the rerouting fields of a request: names in order, values with their lengths.
// Different fields give different results.
func rerouted(r *dunlin.Request, set uint64) string {
	var room [256]byte
	all := room[:0]
	for ; set != 0; set &= set - 1 {
		name := rerouting[bits.TrailingZeros64(set)]
		if v := reroutes(name, view.String(ext.HeaderBytes(r, name))); v != "" {
			all = append(strconv.AppendInt(append(all, name...), int64(len(v)), 10), ':')
			all = append(all, v...)
		}
	}
	return string(all)
}

// secureMix distinguishes hashes of https from those of http.
const secureMix = 0x9e3779b97f4a7c15

// A cacheKey identifies the stored responses to a request, of which Vary selects one.
type cacheKey struct {
	base              uint64 // hash of host, path and query, without the scheme; it also selects the shard
	hash              uint64 // hash of all fields
	host, path, query string
	sent              string // the original path, if it was rewritten
	spelt             string // the client's spelling, if the path has escapes or the query is empty
	secure            bool   // the scheme is https
	extra             string // CacheConfig.Key
	rerouted          string // rerouting fields, each with its length
}

func (k *ResponseCache) baseHash(host, path, query string) uint64 {
	const odd = 0x9e3779b97f4a7c15 // distinguishes positions
	return (maphash.String(k.seed, host)*odd+maphash.String(k.seed, path))*odd + maphash.String(k.seed, query)
}

// writeParts hashes strings unambiguously.
func writeParts(h *maphash.Hash, parts ...string) {
	for _, s := range parts {
		_ = h.WriteByte(byte(len(s))) // never fails
		_ = h.WriteByte(byte(len(s) >> 8))
		_, _ = h.WriteString(s)
	}
}

// keyOf sets the key of a request. It reports false if the request must bypass the cache: if it has a
// body, or a Connection that makes a proxy remove fields. seen has the bits of keyNames for the fields
// that may be present.
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
		if namesFields(view.String(ext.HeaderBytes(r, "Connection"))) {
			return seen, false
		}
	}
	if fields := seen & reroutingFields; fields != 0 {
		key.rerouted = rerouted(r, fields)
	}
	if sent := r.SentPath(); sent != key.path {
		key.sent = sent // the action may use it
		if strings.HasSuffix(inside.Spelling(r), "?") {
			key.spelt = "?"
		}
	} else {
		key.spelt = inside.Spelling(r) // a standard handler or an upstream sees the spelling: for it /a%3Bb differs from /a;b, and /a? from /a
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

// seldomHash returns the hash of the key's rare parts.
func (k *ResponseCache) seldomHash(key *cacheKey) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	writeParts(&h, key.sent, key.spelt, key.extra, key.rerouted)
	return h.Sum64()
}

// serve answers a GET or HEAD request.
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
		if !f.stale.key.same(&key) { // the app now rewrites it to another request
			return k.make(r, &key, req, nil, nil, next)
		}
		return k.make(r, &key, req, f.stale, f, next)
	}
	if part {
		return k.servePart(r, &key, req, asked, next)
	}
	for waited := 0; ; waited++ {
		e, f, leads := k.lookUp(r, &key, req, asked)
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
		case waited == maxWaits:
			return k.make(r, &key, req, nil, nil, next)
		}
		k.counts.waited.Add(1)
		if err := f.wait(r.Context()); err != nil {
			return dunlin.Error(err)
		}
	}
}

// notInCache returns the response to only-if-cached without a usable stored response.
func notInCache() dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusGatewayTimeout, Detail: "the request allows only a cached response, and the cache has none"})
}

// maxWaits is the maximum number of times that a request waits for the response to another request.
// It may be unable to use these responses, because they are failures or other variants.
const maxWaits = 3

// make runs the action and stores its response if it is cacheable. It ends the flight f, unless f is
// nil. The action revalidates stale, unless stale is nil. stale may also be sent instead of an error.
func (k *ResponseCache) make(r *dunlin.Request, key *cacheKey, req httpcache.Request, stale *cacheEntry, f *cacheFlight, next dunlin.Action) dunlin.Response {
	passedOn := false // gather copies the response, and ends the flight with the copy
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
		resp = ext.WithHeaders(r, unconditional, next) // the 304 is not about the stored response, so get the whole response
	}
	if stale != nil && isFailure(resp.StatusCode()) && k.now() < stale.errorUntil {
		k.counts.stale.Add(1)
		k.config.Logger.Warn("cache: serving a stale response after an error", "status", resp.StatusCode(), "error", resp.Err(), "route", r.Route(), "id", r.ID())
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
		return resp.Status(http.StatusNotModified) // the action did not evaluate the client's conditions
	}
	return resp
}

// send answers with an entry, or with 304 if the client has the same response.
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

// now returns the time since the cache was made.
func (k *ResponseCache) now() time.Duration { return time.Since(k.began) }

// at returns the approximate time since the cache was made, by the request's clock.
func (k *ResponseCache) at(r *dunlin.Request) time.Duration { return max(ext.Now(r).Sub(k.began), 0) }

// A cacheFlight is an action that one request runs, the leader, while other requests wait for its response.
type cacheFlight struct {
	id    uint64
	done  chan struct{}
	once  sync.Once   // ends the flight once
	stale *cacheEntry // the stored response, or nil
	own   bool        // the cache's own request runs the action, so no client slows it down
}

// wait waits for the end of the flight, or of ctx.
func (f *cacheFlight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Values of the field Cache-Status (RFC 9211).
const (
	cacheStatusHit     = "Dunlin; hit"
	cacheStatusStale   = "Dunlin; hit; detail=stale"
	cacheStatusMiss    = "Dunlin; fwd=miss"
	cacheStatusStored  = "Dunlin; fwd=miss; stored"
	cacheStatusRenewed = "Dunlin; fwd=stale; fwd-status=304"
)

// leaveOut reports whether a field is not stored, because its value is for one client or one moment.
func leaveOut(name string) bool {
	return isField(name, "Age", "Cache-Status", "Ratelimit", "Ratelimit-Policy", "Idempotent-Replayed") || strings.HasPrefix(name, "Proxy-")
}
