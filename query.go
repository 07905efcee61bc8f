package dunlin

import (
	"iter"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/urlquery"
)

// Query returns the first value of the named query parameter, unescaped, or "" if there is none. Like net/url it skips a
// malformed parameter: with an invalid escape or a semicolon.
func (r *Request) Query(name string) string {
	s, _ := r.queryValue(name)
	return r.own(s)
}

// HasQuery reports whether the query has the named parameter, including an empty one.
func (r *Request) HasQuery(name string) bool {
	_, ok := r.queryValue(name)
	return ok
}

// QueryAll yields every value of the named query parameter, in order.
func (r *Request) QueryAll(name string) iter.Seq[string] {
	r.alive()
	return func(yield func(string) bool) {
		rest := r.s.Query
		for rest != "" {
			var key, value string
			key, value, rest = urlquery.Next(rest)
			if !r.keyIs(key, name) {
				continue
			}
			if s, ok := r.queryText(value); ok && !yield(r.own(s)) {
				return
			}
		}
	}
}

func (r *Request) queryValue(name string) (string, bool) {
	r.alive()
	rest := r.s.Query
	for rest != "" {
		var key, value string
		key, value, rest = urlquery.Next(rest)
		if !r.keyIs(key, name) {
			continue
		}
		if s, ok := r.queryText(value); ok {
			return s, true
		}
	}
	return "", false
}

// unescapedInline is the length, in bytes, up to which an escaped key or value is unescaped on the stack.
const unescapedInline = 256

// keyIs reports whether an escaped key equals name.
func (r *Request) keyIs(key, name string) bool {
	if strings.IndexByte(key, '%') < 0 && strings.IndexByte(key, '+') < 0 {
		return key == name && name != ""
	}
	var space [unescapedInline]byte
	plain, ok := urlquery.AppendUnescaped(space[:0], key)
	return ok && string(plain) == name
}

// queryText returns the unescaped form of a value. If the value has no escape, the result may be borrowed, see own.
func (r *Request) queryText(value string) (string, bool) {
	if strings.IndexByte(value, '%') < 0 && strings.IndexByte(value, '+') < 0 {
		return value, true
	}
	var space [unescapedInline]byte
	plain, ok := urlquery.AppendUnescaped(space[:0], value)
	return r.s.Strings.Copy(plain), ok
}
