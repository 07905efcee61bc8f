package middleware

import (
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
)

// A cacheEntry is a stored response. While it is in a shard, only its position in the ring, used and rendered change.
type cacheEntry struct {
	prev, next *cacheEntry
	used       time.Duration // time of last use; shard.mu guards it, like prev, next and gone
	gone       bool          // removed from the shard

	key    cacheKey
	vary   []string // the request fields that Vary names
	values []string // the values of these fields

	status       int
	fields       []string // names and values
	body         []byte
	etag         string
	lastModified string
	shareable    bool
	mayBeStale   bool // no directive forbids stale use
	size         int64

	made       time.Duration // arrival of its head; all times are since the cache was made
	born       time.Duration // the time at which its age was 0
	freshUntil time.Duration
	staleUntil time.Duration // end of stale-while-revalidate
	errorUntil time.Duration // end of stale-if-error

	rendered [2]atomic.Pointer[renderedEntry] // fresh and stale, rendered for one second
}

type renderedEntry struct {
	age  int64
	resp dunlin.Response // complete, so it may be sent any number of times
}

// A cacheDraft is a response that may become an entry.
type cacheDraft struct {
	status int
	fields []string // names and values
	body   []byte
	kept   bool // an entry owns the body, so it need not be copied
}

// draftOf returns the draft of a response, without the fields that are never stored. The draft shares the
// memory of the response.
func draftOf(resp dunlin.Response) *cacheDraft {
	return newDraft(resp.StatusCode(), resp.Body(), resp.Headers())
}

func newDraft(status int, body []byte, fields iter.Seq2[string, string]) *cacheDraft {
	d := &cacheDraft{status: status, body: body}
	for name, value := range fields {
		if !leaveOut(name) {
			d.fields = append(d.fields, name, value)
		}
	}
	return d
}

// own copies the draft's strings and body, which the response owns.
func (d *cacheDraft) own() {
	if !d.kept {
		d.body = slices.Clone(d.body)
	}
	fields := make([]string, len(d.fields), len(d.fields)+2) // 2 for a Date
	for i, s := range d.fields {
		fields[i] = strings.Clone(s)
	}
	d.fields = fields
}

func (d *cacheDraft) values(name string) (values []string) {
	for i := 0; i < len(d.fields); i += 2 {
		if strings.EqualFold(d.fields[i], name) {
			values = append(values, d.fields[i+1])
		}
	}
	return values
}

func (d *cacheDraft) get(name string) string {
	if values := d.values(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// remove removes the fields for whose name drop returns true.
func (d *cacheDraft) remove(drop func(name string) bool) {
	kept := d.fields[:0]
	for i := 0; i < len(d.fields); i += 2 {
		if !drop(d.fields[i]) {
			kept = append(kept, d.fields[i], d.fields[i+1])
		}
	}
	d.fields = kept
}

// about returns the facts about a draft that package httpcache needs. The first well-formed targeted
// field (RFC 9213) replaces Cache-Control and Expires.
func (k *ResponseCache) about(d *cacheDraft) *httpcache.Response {
	expires := d.values("Expires")
	a := &httpcache.Response{
		Status: d.status, Expires: strings.Join(expires, ", "), HasExpires: len(expires) > 0, Date: d.get("Date"),
		LastModified: d.get("Last-Modified"), Heuristic: k.config.Heuristic,
	}
	for _, name := range k.config.Targets {
		if directives, ok := httpcache.ParseTargeted(d.values(name)...); ok {
			a.Directives, a.HasExpires = directives, false
			return a
		}
	}
	a.Directives = httpcache.ParseDirectives(d.values("Cache-Control")...)
	return a
}

// mayKeep reports whether a response is complete, small enough and no failure. It is called before anything is copied.
func (k *ResponseCache) mayKeep(resp dunlin.Response) bool {
	return resp.Len() >= 0 && resp.Len() <= k.config.MaxEntry && resp.Err() == nil
}

// newEntry returns the entry of a response that arrived with the given Age. It returns nil if the
// response must not be stored, or if it is never fresh and cannot be revalidated.
func (k *ResponseCache) newEntry(r *dunlin.Request, key *cacheKey, req httpcache.Request, d *cacheDraft, age string) *cacheEntry {
	clock := time.Now()
	about := k.about(d)
	if omit := about.Directives.Omit; len(omit) > 0 {
		d.remove(func(name string) bool { return isField(name, omit...) })
	}
	vary, always := httpcache.ParseVary(d.values("Vary")...)
	about.SetsCookie, about.VariesAlways = len(d.values("Set-Cookie")) > 0, always
	if inside.Credentials(r, 0, false)&exchange.Identified != 0 { // the action may have read the session
		req.Identified = true
	}
	if !about.MayStore(req) {
		return nil
	}
	e := k.entryOf(r, key, d, about, vary, about.Age(age, clock), clock)
	if e.freshUntil > k.now() {
		return e
	}
	if !k.config.Revalidate || !about.Explicit() || e.etag == "" && e.lastModified == "" {
		return nil
	}
	e.freshUntil = e.born
	return e
}

// cloned returns copies of strings.
func cloned(list []string) []string {
	own := make([]string, len(list))
	for i, s := range list {
		own[i] = strings.Clone(s)
	}
	return own
}

// entryOf makes an entry. If the response has no Date, it adds one with the time of arrival (RFC 9110
// section 6.6.1).
func (k *ResponseCache) entryOf(r *dunlin.Request, key *cacheKey, d *cacheDraft, about *httpcache.Response, vary []string, age time.Duration, clock time.Time) *cacheEntry {
	d.own()
	now := k.now()
	e := &cacheEntry{
		key: key.clone(), vary: cloned(vary), status: d.status, body: d.body, fields: d.fields,
		etag: d.get(etag), lastModified: d.get("Last-Modified"), shareable: about.Shareable(), mayBeStale: about.MayBeStale(),
		made: now, born: now - age, used: now,
	}
	if d.get("Date") == "" {
		e.fields = append(e.fields, "Date", clock.UTC().Format(http.TimeFormat))
	}
	e.freshUntil = e.born + about.Freshness(clock)
	whileRevalidate, ifError := about.Stale(k.config.StaleWhileRevalidate, k.config.StaleIfError)
	e.staleUntil, e.errorUntil = e.freshUntil+whileRevalidate, e.freshUntil+ifError
	const overhead = 1024 // bytes for the entry, its header blocks, and its elements of the map and the ring
	e.size = overhead + int64(len(e.body)) + key.size()
	for i := 0; i < len(e.fields); i += 2 {
		e.size += 4 * int64(len(e.fields[i])+len(e.fields[i+1])+16) // stored, and rendered for two engines
	}
	for _, v := range selected(r, vary, nil) {
		e.values = append(e.values, strings.Clone(v))
		e.size += int64(len(v) + 32)
	}
	return e
}

// response returns the stored response with Age at the given time. It is rendered at most once a second.
func (e *cacheEntry) response(now time.Duration, status string) dunlin.Response {
	age := int64(max(now-e.born, 0) / time.Second) // another loop's clock may lag
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
	resp = resp.Status(e.status).With(dunlin.NewHeaderBlock(fields...))
	slot.Store(&renderedEntry{age, resp})
	return resp
}

// notModified reports whether the client of a conditional request already has the entry's response
// (RFC 9110 section 13.2.2).
func (e *cacheEntry) notModified(r *dunlin.Request) bool {
	if r.Header("If-None-Match") == "" && r.Header("If-Modified-Since") == "" {
		return false
	}
	changed := e.lastModified
	if changed == "" {
		changed = e.get("Date") // the latest possible Last-Modified (RFC 9111 section 4.3.2)
	}
	return holds(r, e.etag, changed)
}

// holds reports whether the client's stored response has this entity tag or modification time.
func holds(r *dunlin.Request, tag, changed string) bool {
	if r.Header("If-None-Match") != "" {
		return tag != "" && !noneMatch(r, tag)
	}
	have, err := http.ParseTime(r.Header("If-Modified-Since"))
	if err != nil {
		return false
	}
	modified, err := http.ParseTime(changed)
	return err == nil && !modified.After(have)
}

// get returns the value of a stored field.
func (e *cacheEntry) get(name string) string { return (&cacheDraft{fields: e.fields}).get(name) }
