package httpcache

import (
	"strings"
	"time"
)

// Directives are the directives of a Cache-Control field. A time is None if its directive is missing.
type Directives struct {
	NoStore, NoCache                                 bool
	Private, Public, MustRevalidate, ProxyRevalidate bool
	MustUnderstand                                   bool
	OnlyIfCached, AnyStale                           bool

	MaxAge, SMaxAge                    time.Duration
	StaleWhileRevalidate, StaleIfError time.Duration // RFC 5861
	MaxStale, MinFresh                 time.Duration

	Omit []string // fields that a shared cache must not store, because no-cache or private names them
}

// None is the time of a missing directive.
const None time.Duration = -1

// longest replaces longer times. RFC 9111 section 1.2.2 does not require support for more than 2^31 seconds.
const longest = (1 << 31) * time.Second

// ParseDirectives parses all lines of a Cache-Control field. It ignores unknown directives. If a directive is
// repeated, the shorter time is used. A malformed time counts as zero, which makes the response stale (RFC 9111
// section 4.2.1). If no-cache and private have field names, they apply only to these fields.
func ParseDirectives(lines ...string) Directives {
	d := Directives{MaxAge: None, SMaxAge: None, StaleWhileRevalidate: None, StaleIfError: None, MaxStale: None, MinFresh: None}
	for _, line := range lines {
		for line != "" {
			var name, value string
			var valued bool
			name, value, valued, line = cutDirective(line)
			d.set(name, value, valued)
		}
	}
	return d
}

func (d *Directives) set(name, value string, valued bool) {
	switch strings.ToLower(name) {
	case "no-store":
		d.NoStore = true
	case "no-cache":
		d.NoCache = !d.omit(value) || d.NoCache
	case "private":
		d.Private = !d.omit(value) || d.Private
	case "public":
		d.Public = true
	case "must-revalidate":
		d.MustRevalidate = true
	case "proxy-revalidate":
		d.ProxyRevalidate = true
	case "must-understand":
		d.MustUnderstand = true
	case "only-if-cached":
		d.OnlyIfCached = true
	case "max-age":
		shorter(&d.MaxAge, value)
	case "s-maxage":
		shorter(&d.SMaxAge, value)
	case "stale-while-revalidate":
		shorter(&d.StaleWhileRevalidate, value)
	case "stale-if-error":
		shorter(&d.StaleIfError, value)
	case "min-fresh":
		shorter(&d.MinFresh, value)
	case "max-stale":
		if !valued {
			d.AnyStale = true
		} else {
			shorter(&d.MaxStale, value)
		}
	}
}

// omit adds the names in a list of fields to Omit, and reports whether the list has any.
func (d *Directives) omit(list string) bool {
	names, all := ParseVary(list)
	if all || len(names) == 0 {
		return false
	}
	for _, name := range names {
		for i := range len(name) {
			if c := name[i]; !isLetter(c) && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	d.Omit = append(d.Omit, names...)
	return true
}

func shorter(have *time.Duration, value string) {
	t := Seconds(value)
	if *have == None || t < *have {
		*have = t
	}
}

// Seconds parses delta-seconds (RFC 9111 section 1.2.2). It returns zero if s does not consist of digits.
func Seconds(s string) time.Duration {
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
		n = min(n*10+int64(s[i]-'0'), int64(longest/time.Second))
	}
	return time.Duration(n) * time.Second
}

// malformed replaces the value of a directive that has white space before the equals sign, which RFC 9111 section
// 5.2 forbids. malformed is neither a valid time nor a valid list of fields.
const malformed = "\x00"

// cutDirective removes the first directive from a list.
func cutDirective(s string) (name, value string, valued bool, rest string) {
	s = strings.TrimLeft(s, " \t,")
	end := strings.IndexAny(s, "=,")
	if end < 0 {
		return strings.TrimRight(s, " \t"), "", false, ""
	}
	name, rest = strings.TrimRight(s[:end], " \t"), s[end+1:]
	if s[end] == ',' {
		return name, "", false, rest
	}
	value, rest = cutValue(rest)
	if len(name) < end {
		value = malformed
	}
	return name, value, true, rest
}

// cutValue removes a token or a quoted string from the start of a list. rest begins at the next comma.
func cutValue(s string) (value, rest string) {
	if s == "" || s[0] != '"' {
		value, rest, _ = strings.Cut(s, ",")
		return strings.TrimRight(value, " \t"), rest
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			_, rest, _ = strings.Cut(s[i+1:], ",")
			return s[1:i], rest
		}
	}
	return s[1:], "" // an unclosed quote extends to the end
}
