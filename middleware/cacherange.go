package middleware

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
)

// servePart answers a request with Range from what is kept and fresh (RFC 9110 section 14). What is not here, or of which several ranges are
// wanted, is the action's to answer; parts are not kept.
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
		return resp // in whole: a Range that is not understood counts as none
	case first < 0:
		return dunlin.Problem(dunlin.ProblemDetails{
			Status: http.StatusRequestedRangeNotSatisfiable, Detail: fmt.Sprintf("the content has %d bytes", len(e.body)),
		}).Header("Content-Range", "bytes */"+strconv.Itoa(len(e.body)))
	}
	part := e.body[first:end]
	if resp.Get("Content-Digest") != "" {
		resp = resp.Header("Content-Digest", digestOf(part)) // it is of what is sent (RFC 9530 section 2)
	}
	return resp.WithBody(part).Status(http.StatusPartialContent).
		Header("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, end-1, len(e.body)))
}

// peek returns what is kept for a request and fresh, or nil.
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

// divisible reports whether parts of it are of use: those of an encoded body can be put together only by a strong tag, which Compress takes
// away, since its bytes may be others the next time.
func (e *cacheEntry) divisible() bool {
	if e.get("Content-Encoding") != "" && !strings.HasPrefix(e.etag, `"`) {
		return false
	}
	return !strings.EqualFold(e.get("Accept-Ranges"), "none")
}

// sameRange reports whether If-Range, if it is there, names what is kept: else all of it is sent (RFC 9110 section 13.1.5).
func (e *cacheEntry) sameRange(r *dunlin.Request) bool {
	want := r.Header("If-Range")
	switch {
	case want == "":
		return true
	case strings.HasPrefix(want, `"`):
		return want == e.etag
	}
	return want == e.lastModified // a weak tag is none of both
}

// cutRange returns where in a content of a size the one range begins and ends that a Range field asks for. It is not known if that is
// malformed, or in other units; first is negative for a range outside of the content.
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

// position reads digits, and nothing else; what is beyond any content is cut down.
func position(s string) (n int64, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), 1<<40)
	}
	return n, true
}
