package middleware

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
)

// servePart answers a request with Range from a fresh stored response (RFC 9110 section 14). The
// action answers cache misses and requests for several ranges. Partial responses of actions are not
// stored.
func (k *ResponseCache) servePart(r *dunlin.Request, key *cacheKey, req httpcache.Request, asked *httpcache.Directives, next dunlin.Action) dunlin.Response {
	e := k.peek(r, key, req, asked)
	header := r.HeaderList("Range")
	only := asked != nil && asked.OnlyIfCached
	switch {
	case e == nil && only:
		return notInCache()
	case e == nil || strings.Contains(header, ",") && !only:
		k.counts.passed.Add(1)
		return next(r)
	}
	resp := k.send(r, e)
	if resp.StatusCode() != http.StatusOK || !e.sameRange(r) || !e.divisible() {
		return resp
	}
	first, end, known := cutRange(header, int64(len(e.body)))
	switch {
	case !known:
		return resp // the whole response: a malformed Range is ignored
	case first < 0:
		return dunlin.Problem(&dunlin.ProblemDetails{
			Status: http.StatusRequestedRangeNotSatisfiable, Detail: fmt.Sprintf("the content has %d bytes", len(e.body)),
		}).Header("Content-Range", "bytes */"+strconv.Itoa(len(e.body)))
	}
	part := e.body[first:end]
	if resp.Get("Content-Digest") != "" {
		resp = resp.Header("Content-Digest", digestOf(part)) // the digest is that of the sent bytes (RFC 9530 section 2)
	}
	return resp.WithBody(part).Status(http.StatusPartialContent).
		Header("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, end-1, len(e.body)))
}

// peek returns the fresh stored response to a request, or nil.
func (k *ResponseCache) peek(r *dunlin.Request, key *cacheKey, req httpcache.Request, asked *httpcache.Directives) *cacheEntry {
	s, now := k.shard(key.base), k.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := k.match(s, r, key)
	switch {
	case e == nil || now >= e.freshUntil, (req.Authorized || req.Identified) && !e.shareable, asked != nil && !asked.Accepts(now-e.born, e.freshUntil-e.born):
		return nil
	}
	e.used = now
	s.unlink(e)
	s.toFront(e)
	return e
}

// divisible reports whether ranges of the response may be sent. A client can combine ranges of an
// encoded body only with a strong ETag. Compress makes ETags weak, since a later compression may
// produce other bytes.
func (e *cacheEntry) divisible() bool {
	if e.get("Content-Encoding") != "" && !strings.HasPrefix(e.etag, `"`) {
		return false
	}
	return !strings.EqualFold(e.get("Accept-Ranges"), "none")
}

// sameRange reports whether If-Range is absent or matches the stored response. If not, the whole
// response is sent (RFC 9110 section 13.1.5).
func (e *cacheEntry) sameRange(r *dunlin.Request) bool {
	want := r.Header("If-Range")
	switch {
	case want == "":
		return true
	case strings.HasPrefix(want, `"`):
		return want == e.etag
	}
	return want == e.lastModified // a weak tag matches neither
}

// cutRange returns the bounds of the single range of a Range field, for content with size bytes. known
// is false if the field is malformed or its unit is not bytes. first is negative if the range is not
// satisfiable.
func cutRange(field string, size int64) (first, end int64, known bool) {
	unit, spec, ok := strings.Cut(field, "=")
	from, to, dash := strings.Cut(strings.Trim(spec, " \t"), "-")
	if !ok || !dash || !strings.EqualFold(strings.Trim(unit, " \t"), "bytes") || from == "" && to == "" {
		return 0, 0, false
	}
	a, okA := position(from)
	b, okB := position(to)
	switch {
	case !okA || !okB || from != "" && to != "" && b < a:
		return 0, 0, false
	case from == "" && (b == 0 || size == 0), from != "" && a >= size:
		return -1, 0, true
	case from == "":
		return max(size-b, 0), size, true
	case to == "":
		return a, size, true
	}
	return a, min(b, size-1) + 1, true
}

// position parses decimal digits only. n is at most 1<<40, which exceeds the length of any content.
func position(s string) (n int64, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), 1<<40)
	}
	return n, true
}
