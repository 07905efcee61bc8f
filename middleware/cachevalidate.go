package middleware

import (
	"net/http"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
)

// A stale response with an ETag or Last-Modified is revalidated (RFC 9111 section 4.3). The action
// sees conditions for the stored response in place of the client's conditions. A 304 renews the stored
// response.

// unconditional removes the conditions of a request.
var unconditional = map[string]string{
	"If-Match": "", "If-None-Match": "", "If-Modified-Since": "", "If-Unmodified-Since": "", "If-Range": "",
}

// ask runs the action, and reports whether the request was changed to revalidate the stale response.
func (k *ResponseCache) ask(r *dunlin.Request, stale *cacheEntry, next dunlin.Action) (resp dunlin.Response, asked bool) {
	if stale == nil || stale.status != http.StatusOK || stale.etag == "" && stale.lastModified == "" || r.Method() != http.MethodGet {
		return next(r), false
	}
	return ext.WithHeaders(r, map[string]string{
		"If-Match": "", "If-Unmodified-Since": "", "If-Range": "", "If-None-Match": stale.etag, "If-Modified-Since": stale.lastModified,
	}, next), true
}

// renew answers with the stored response, updated by the fields of a 304, and stores it if allowed. It
// reports false if the 304 is about another response.
func (k *ResponseCache) renew(r *dunlin.Request, key *cacheKey, req httpcache.Request, stale *cacheEntry, resp dunlin.Response, epoch uint64) (dunlin.Response, bool) {
	if !stale.sameAs(resp.Get(etag), resp.Get("Last-Modified")) {
		return dunlin.Response{}, false
	}
	d := draftOf(resp)
	d.remove(isRetained)
	fresh := &cacheDraft{status: stale.status, body: stale.body, kept: true}
	for i := 0; i < len(stale.fields); i += 2 {
		if len(d.values(stale.fields[i])) == 0 {
			fresh.fields = append(fresh.fields, stale.fields[i], stale.fields[i+1])
		}
	}
	if d.get("Date") == "" {
		fresh.remove(func(name string) bool { return strings.EqualFold(name, "Date") }) // the stored Date remains valid
	}
	fresh.fields = append(fresh.fields, d.fields...)
	k.counts.renewed.Add(1)
	said := k.about(fresh).Directives
	e := k.newEntry(r, key, req, fresh, resp.Get("Age"))
	if k.store(key, req, e, epoch, true) {
		resp = e.answer(r, k.now(), cacheStatusRenewed)
		for i := 0; i < len(d.fields); i += 2 {
			if isField(d.fields[i], said.Omit...) { // the field is only for this client, and not stored
				resp = resp.AddHeader(d.fields[i], d.fields[i+1])
			}
		}
		return resp, true
	}
	if e == nil && d.get("Set-Cookie") == "" {
		k.discard(stale) // the fields of the 304 forbid storing it
	}
	// The response is private, or no longer cacheable.
	about, clock := k.about(fresh), time.Now()
	e = k.entryOf(r, key, fresh, about, nil, about.Age(resp.Get("Age"), clock), clock)
	return e.answer(r, k.now(), cacheStatusRenewed), true
}

// supersedes reports whether an uncacheable response removes the stored response. Without this, the
// stale response could be sent although the response is now private, no-store or no-cache.
func (k *ResponseCache) supersedes(d *cacheDraft) bool {
	if d.status >= http.StatusBadRequest && d.status != http.StatusNotFound && d.status != http.StatusGone {
		return false
	}
	said := k.about(d).Directives
	return said.Private || said.NoStore || said.NoCache
}

// discard removes an entry.
func (k *ResponseCache) discard(e *cacheEntry) {
	s := k.shard(e.key.base)
	s.mu.Lock()
	defer s.mu.Unlock()
	k.drop(s, e)
}

// isRetained reports whether a 304 leaves a field unchanged, because it describes the stored content (RFC 9111 section 3.2).
func isRetained(name string) bool {
	return isField(name, etag, "Last-Modified", "Content-Encoding", "Content-Range", "Content-Length", "Content-Digest", "Repr-Digest")
}

// sameAs reports whether the validators of a 304, if any, equal those of the entry (RFC 9111 section 4.3.4).
func (e *cacheEntry) sameAs(tag, modified string) bool {
	if tag != "" {
		return tag == e.etag || strings.HasPrefix(tag, "W/") && opaque(tag) == opaque(e.etag)
	}
	return modified == "" || modified == e.lastModified
}

// answer returns the response to a request, or a 304 if the client has the same response.
func (e *cacheEntry) answer(r *dunlin.Request, now time.Duration, status string) dunlin.Response {
	resp := e.response(now, status)
	if e.status == http.StatusOK && e.notModified(r) {
		return resp.Status(http.StatusNotModified)
	}
	return resp
}
