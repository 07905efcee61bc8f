package dunlin

import (
	"iter"
	"strings"
)

// Query returns the first value of the named query parameter, unescaped; ""
// when there is none. A pair that is malformed (a bad escape, a semicolon) is
// skipped, as net/url does.
func (r *Request) Query(name string) string {
	s, _ := r.queryValue(name)
	return r.own(s)
}

// HasQuery reports whether the query has the named parameter, be it empty.
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
			key, value, rest = nextPair(rest)
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
		key, value, rest = nextPair(rest)
		if !r.keyIs(key, name) {
			continue
		}
		if s, ok := r.queryText(value); ok {
			return s, true
		}
	}
	return "", false
}

// nextPair splits the first key=value off a query; a pair with a semicolon
// comes back empty.
func nextPair(query string) (key, value, rest string) {
	pair, rest, _ := strings.Cut(query, "&")
	if strings.IndexByte(pair, ';') >= 0 {
		return "", "", rest
	}
	key, value, _ = strings.Cut(pair, "=")
	return key, value, rest
}

// keyIs reports whether an escaped key says name.
func (r *Request) keyIs(key, name string) bool {
	if strings.IndexByte(key, '%') < 0 && strings.IndexByte(key, '+') < 0 {
		return key == name && name != ""
	}
	plain, ok := unescapeQuery(r.scratch[:0], key)
	r.scratch = plain
	return ok && string(plain) == name
}

// queryText returns an escaped value, which is safe only if something was escaped: see own.
func (r *Request) queryText(value string) (string, bool) {
	if strings.IndexByte(value, '%') < 0 && strings.IndexByte(value, '+') < 0 {
		return value, true
	}
	plain, ok := unescapeQuery(r.scratch[:0], value)
	r.scratch = plain
	return r.s.Strings.Copy(plain), ok
}

// unescapeQuery appends s to dst with %XX decoded and + as a space; false for
// a bad escape.
func unescapeQuery(dst []byte, s string) ([]byte, bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			dst = append(dst, ' ')
		case '%':
			if i+2 >= len(s) {
				return dst, false
			}
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi < 0 || lo < 0 {
				return dst, false
			}
			dst = append(dst, byte(hi<<4|lo))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst, true
}

// unhex returns the value of a hexadecimal digit, -1 for any other byte.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
