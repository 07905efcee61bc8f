package httpcache

import (
	"net/http"
	"strings"
	"time"
)

// A Response has the properties of a response on which the rules depend.
type Response struct {
	Status       int
	Directives   Directives
	Expires      string // value of Expires, or ""
	Date         string // value of Date; "" means the present time
	LastModified string // value of Last-Modified, or ""
	HasExpires   bool
	SetsCookie   bool
	VariesAlways bool // Vary: *

	// Heuristic is the maximum freshness that may be assumed for a response without an explicit time. 0 means that
	// none may be assumed.
	Heuristic time.Duration
}

// A Request has the properties of a request on which the rules depend.
type Request struct {
	Authorized bool // the request has an Authorization field
	Identified bool // the request has cookies or other client identification
	NoStore    bool // Cache-Control of the request contains no-store, and the cache follows it
}

// understood has the status codes of errors that may be stored. These errors concern the resource. Errors that concern
// a single request, its client or the present moment are not stored. Of the 2xx and 3xx codes, all except 206 and 304
// may be stored.
var understood = map[int]bool{
	http.StatusNotFound: true, http.StatusMethodNotAllowed: true, http.StatusGone: true, http.StatusRequestURITooLong: true,
	http.StatusUnavailableForLegalReasons: true, http.StatusNotImplemented: true,
}

// heuristicCodes has the status codes for which a cache may assume a freshness time (RFC 9110 section 15.1).
var heuristicCodes = map[int]bool{
	http.StatusOK: true, http.StatusNonAuthoritativeInfo: true, http.StatusNoContent: true, http.StatusMultipleChoices: true,
	http.StatusMovedPermanently: true, http.StatusPermanentRedirect: true, http.StatusNotFound: true, http.StatusMethodNotAllowed: true,
	http.StatusGone: true, http.StatusRequestURITooLong: true, http.StatusNotImplemented: true,
}

// cacheable reports whether responses with a status may be stored.
func cacheable(status int) bool {
	if status < 200 || status >= 400 {
		return understood[status]
	}
	return status != http.StatusPartialContent && status != http.StatusNotModified
}

// Explicit reports whether a response has an explicit freshness time, which may be zero.
func (r *Response) Explicit() bool {
	d := &r.Directives
	return d.SMaxAge != None || d.MaxAge != None || r.HasExpires || d.NoCache
}

// Freshness returns how long a response is fresh in a shared cache (section 4.2.1). It returns 0 if the response has
// no explicit time and no heuristic time applies.
func (r *Response) Freshness(now time.Time) time.Duration {
	switch d := &r.Directives; {
	case d.NoCache:
		return 0
	case d.SMaxAge != None:
		return d.SMaxAge
	case d.MaxAge != None:
		return d.MaxAge
	}
	if date, ok := parseDate(r.Date); ok {
		now = date
	}
	if !r.HasExpires {
		return r.heuristic(now)
	}
	expires, ok := parseDate(r.Expires)
	if !ok {
		return 0 // an invalid date such as "0" means that the response has expired
	}
	return min(max(expires.Sub(now), 0), longest)
}

// heuristic returns a tenth of the time since the response was last modified (section 4.2.2).
func (r *Response) heuristic(now time.Time) time.Duration {
	changed, ok := parseDate(r.LastModified)
	if !ok || r.Heuristic == 0 || !heuristicCodes[r.Status] && !(cacheable(r.Status) && r.Directives.Public) {
		return 0
	}
	return min(max(now.Sub(changed)/10, 0), r.Heuristic)
}

// parseDate parses an HTTP date (RFC 9110 section 5.6.7). It is strict, except that it ignores letter case (RFC 9111
// section 4.2) and the day of the week.
func parseDate(s string) (time.Time, bool) {
	if n := len(s) - len("GMT"); n > 0 && strings.EqualFold(s[n:], "GMT") {
		s = s[:n] + "GMT"
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return t, false
	}
	_, rest, _ := strings.Cut(s, " ")
	for _, layout := range [...]string{http.TimeFormat, time.RFC850, time.ANSIC} {
		if _, strict, _ := strings.Cut(t.Format(layout), " "); strings.EqualFold(strict, rest) {
			return t, true
		}
	}
	return t, false
}

// Age returns the age of a response when it arrives (RFC 9111 section 4.2.3). It is the greater of the age in the
// field Age and the age according to Date. If the field is a list, its first member is used.
func (r *Response) Age(field string, now time.Time) time.Duration {
	first, _, _ := strings.Cut(field, ",")
	age := Seconds(strings.TrimSpace(first))
	if date, ok := parseDate(r.Date); ok {
		age = max(age, min(now.Sub(date).Truncate(time.Second), longest))
	}
	return age
}

// Shareable reports whether a response explicitly allows a shared cache to store it even if the request has
// credentials (section 3.5).
func (r *Response) Shareable() bool {
	d := &r.Directives
	return d.Public || d.SMaxAge != None
}

// MayStore reports whether a shared cache may store the response to a request (section 3). It does not consider
// whether the response is fresh. MayStore is stricter than the RFC in two points. A response that sets a cookie is
// private. So is a response to a client that is identified by a cookie or by other means, unless a directive
// explicitly allows storing. And an error is stored only if it concerns the resource.
func (r *Response) MayStore(req Request) bool {
	d := &r.Directives
	switch {
	case !cacheable(r.Status), r.VariesAlways, r.SetsCookie, d.Private, req.NoStore:
		return false
	case d.MustUnderstand && !heuristicCodes[r.Status] && !understood[r.Status]: // section 5.2.2.3
		return false
	case d.NoStore && !d.MustUnderstand:
		return false
	case req.Authorized && !r.Shareable() && !d.MustRevalidate:
		return false
	case req.Identified && !r.Shareable():
		return false
	}
	return true
}

// MayBeStale reports whether a stale response may be sent (section 4.2.4).
func (r *Response) MayBeStale() bool {
	d := &r.Directives
	return !d.NoCache && !d.MustRevalidate && !d.ProxyRevalidate && d.SMaxAge == None // s-maxage implies proxy-revalidate (section 5.2.2.10)
}

// Stale returns how long a stale response may be sent while it is revalidated, and how long it may be sent instead of
// an error. Without a directive of RFC 5861 the results are the arguments. Directives such as must-revalidate make
// both results 0 (section 4.2.4).
func (r *Response) Stale(whileRevalidate, ifError time.Duration) (time.Duration, time.Duration) {
	d := &r.Directives
	if !r.MayBeStale() && (d.NoCache || d.MustRevalidate || d.ProxyRevalidate || d.StaleWhileRevalidate == None && d.StaleIfError == None) {
		return 0, 0
	}
	if d.StaleWhileRevalidate != None {
		whileRevalidate = d.StaleWhileRevalidate
	}
	if d.StaleIfError != None {
		ifError = d.StaleIfError
	}
	return whileRevalidate, ifError
}

// Accepts reports whether the directives of a request allow a stored response (section 5.2.1). age is the age of the
// response, and fresh is its freshness time.
func (d *Directives) Accepts(age, fresh time.Duration) bool {
	switch {
	case d.NoCache, d.NoStore:
		return false
	case d.MaxAge != None && age > d.MaxAge && d.MaxStale == None && !d.AnyStale:
		return false
	case d.MinFresh != None && fresh-age < d.MinFresh:
		return false
	}
	return true
}

// AcceptsStale reports whether the directives of a request allow a response that has been stale for the time since.
func (d *Directives) AcceptsStale(since time.Duration) bool {
	return d.AnyStale || d.MaxStale != None && since <= d.MaxStale
}
