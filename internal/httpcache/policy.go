package httpcache

import (
	"net/http"
	"strings"
	"time"
)

// A Response is what the rules need to know of one.
type Response struct {
	Status       int
	Directives   Directives
	Expires      string // the field; "" for none
	Date         string // likewise, of the response; "" stands for now
	LastModified string // likewise
	HasExpires   bool
	SetsCookie   bool
	VariesAlways bool // Vary: *

	// Guess bounds for how long a response is taken for fresh that does not say so; 0: nothing is guessed.
	Guess time.Duration
}

// A Request is what the rules need to know of one whose answer might be stored.
type Request struct {
	Authorized bool // it has an Authorization field
	Identified bool // it has cookies, or its client is known by other means
	NoStore    bool // its Cache-Control says so, and is heeded
}

// understood are the error codes whose meaning for caches is understood here: those that are about the resource, and not about
// one request, its sender or this moment. Of others, 2xx and 3xx are stored but for parts and 304.
var understood = map[int]bool{
	http.StatusNotFound: true, http.StatusMethodNotAllowed: true, http.StatusGone: true, http.StatusRequestURITooLong: true,
	http.StatusUnavailableForLegalReasons: true, http.StatusNotImplemented: true,
}

// guessable are the codes of which may be guessed for how long a response is fresh (RFC 9110 section 15.1).
var guessable = map[int]bool{
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

// Explicit reports whether a response says for how long it is fresh, be it not at all.
func (r *Response) Explicit() bool {
	d := &r.Directives
	return d.SMaxAge != None || d.MaxAge != None || r.HasExpires || d.NoCache
}

// Freshness returns for how long a response is fresh in a shared cache (section 4.2.1); 0 where it does not say, and nothing
// is guessed.
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
		return 0 // "0" and the like say: expired
	}
	return min(max(expires.Sub(now), 0), longest)
}

// heuristic returns what is guessed: a tenth of the time since the response has changed (section 4.2.2).
func (r *Response) heuristic(now time.Time) time.Duration {
	changed, ok := parseDate(r.LastModified)
	if !ok || r.Guess == 0 || !guessable[r.Status] && !(cacheable(r.Status) && r.Directives.Public) {
		return 0
	}
	return min(max(now.Sub(changed)/10, 0), r.Guess)
}

// parseDate reads a date that is written as HTTP writes dates, and not nearly so (RFC 9110 section 5.6.7), but that capitals do
// not matter (RFC 9111 section 4.2), nor which day of the week it is said to be.
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

// Age returns how old a response was when it came, by its field Age, the first of a list, and by its date, the greater of both (RFC 9111
// section 4.2.3).
func (r *Response) Age(field string, now time.Time) time.Duration {
	first, _, _ := strings.Cut(field, ",")
	age := Seconds(strings.TrimSpace(first))
	if date, ok := parseDate(r.Date); ok {
		age = max(age, min(now.Sub(date).Truncate(time.Second), longest))
	}
	return age
}

// Shareable reports whether a response says that it may be sent to others than who asked, also when those
// are known by credentials (section 3.5).
func (r *Response) Shareable() bool {
	d := &r.Directives
	return d.Public || d.SMaxAge != None
}

// MayStore reports whether a shared cache may store the answer to a request (section 3), be it fresh or not. It is stricter than the
// section in two things: an answer that sets a cookie, or is to a request whose client is known by a cookie or other means, is taken for
// that client's own unless it says that it is for all; the former always. And errors are stored only if they are about the resource.
func (r *Response) MayStore(req Request) bool {
	d := &r.Directives
	switch {
	case !cacheable(r.Status), r.VariesAlways, r.SetsCookie, d.Private, req.NoStore:
		return false
	case d.MustUnderstand && !guessable[r.Status] && !understood[r.Status]: // section 5.2.2.3
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

// MayBeStale reports whether nothing forbids to send a response that has become stale (section 4.2.4).
func (r *Response) MayBeStale() bool {
	d := &r.Directives
	return !d.NoCache && !d.MustRevalidate && !d.ProxyRevalidate && d.SMaxAge == None // which implies proxy-revalidate (section 5.2.2.10)
}

// Stale returns for how long after it has become stale a response may be sent while a new one is made, and
// instead of an error. Without a directive of RFC 5861 it is for the given times; must-revalidate and its
// like forbid it (section 4.2.4).
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

// Accepts reports whether a request's directives let a stored response of an age be sent, that is fresh for so
// long from its beginning (section 5.2.1).
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

// AcceptsStale reports whether a request's directives let a response be sent that has been stale for so long, and may be sent so.
func (d *Directives) AcceptsStale(since time.Duration) bool {
	return d.AnyStale || d.MaxStale != None && since <= d.MaxStale
}
