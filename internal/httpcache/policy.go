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
	HasExpires   bool
	SetsCookie   bool
	VariesAlways bool // Vary: *
}

// A Request is what the rules need to know of one whose answer might be stored.
type Request struct {
	Authorized bool // it has an Authorization field
	Cookies    bool // it has cookies
	NoStore    bool // its Cache-Control says so, and is heeded
}

// cacheable are the status codes whose meaning for caches is understood here.
var cacheable = map[int]bool{
	http.StatusOK: true, http.StatusNonAuthoritativeInfo: true, http.StatusNoContent: true,
	http.StatusMultipleChoices: true, http.StatusMovedPermanently: true, http.StatusFound: true, http.StatusTemporaryRedirect: true,
	http.StatusPermanentRedirect: true,
	http.StatusNotFound:          true, http.StatusMethodNotAllowed: true, http.StatusGone: true, http.StatusRequestURITooLong: true,
	http.StatusUnavailableForLegalReasons: true, http.StatusNotImplemented: true,
}

// Freshness returns for how long a response is fresh in a shared cache (section 4.2.1); 0 where it does not say. Nothing is
// guessed.
func (r *Response) Freshness(now time.Time) time.Duration {
	switch d := &r.Directives; {
	case d.SMaxAge != None:
		return d.SMaxAge
	case d.MaxAge != None:
		return d.MaxAge
	case !r.HasExpires:
		return 0
	}
	expires, ok := parseDate(r.Expires)
	if !ok {
		return 0 // "0" and the like say: expired
	}
	if date, err := http.ParseTime(r.Date); err == nil {
		now = date
	}
	return min(max(expires.Sub(now), 0), longest)
}

// parseDate reads a date that is written as HTTP writes dates, and not nearly so (RFC 9110 section 5.6.7).
func parseDate(s string) (time.Time, bool) {
	t, err := http.ParseTime(s)
	if err != nil {
		return t, false
	}
	for _, layout := range [...]string{http.TimeFormat, time.RFC850, time.ANSIC} {
		if t.Format(layout) == s {
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

// MayStore reports whether a shared cache may store the answer to a request (section 3). It is stricter than the section in one
// thing: an answer that sets a cookie, or is to a request with one, is taken for that client's own unless it
// says that it is for all; the former always.
func (r *Response) MayStore(req Request, now time.Time) bool {
	d := &r.Directives
	switch {
	case !cacheable[r.Status], r.VariesAlways, r.SetsCookie, d.Private, d.NoCache, req.NoStore:
		return false
	case d.NoStore && !d.MustUnderstand: // section 5.2.2.3
		return false
	case req.Authorized && !r.Shareable() && !d.MustRevalidate:
		return false
	case req.Cookies && !r.Shareable():
		return false
	}
	return r.Freshness(now) > 0
}

// Stale returns for how long after it has become stale a response may be sent while a new one is made, and
// instead of an error. Without a directive of RFC 5861 it is for the given times; must-revalidate and its
// like forbid it (section 4.2.4).
func (r *Response) Stale(whileRevalidate, ifError time.Duration) (time.Duration, time.Duration) {
	d := &r.Directives
	if d.MustRevalidate || d.ProxyRevalidate || d.SMaxAge != None && d.StaleWhileRevalidate == None && d.StaleIfError == None {
		return 0, 0 // s-maxage implies proxy-revalidate (section 5.2.2.10)
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
	case d.NoCache:
		return false
	case d.MaxAge != None && age > d.MaxAge && d.MaxStale == None && !d.AnyStale:
		return false
	case d.MinFresh != None && fresh-age < d.MinFresh:
		return false
	}
	return true
}
