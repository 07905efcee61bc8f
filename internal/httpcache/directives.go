package httpcache

import (
	"strings"
	"time"
)

// Directives are those of the Cache-Control field of a request or a response. A time that is missing is None.
type Directives struct {
	NoStore, NoCache                                 bool
	Private, Public, MustRevalidate, ProxyRevalidate bool
	MustUnderstand                                   bool
	OnlyIfCached, AnyStale                           bool

	MaxAge, SMaxAge                    time.Duration
	StaleWhileRevalidate, StaleIfError time.Duration // RFC 5861
	MaxStale, MinFresh                 time.Duration

	Omit []string // fields that a shared cache is not to keep: those that no-cache and private name
}

// None is a time that is not said.
const None time.Duration = -1

// longest stands for all times beyond it: RFC 9111 section 1.2.2 asks for 2^31 seconds at most.
const longest = (1 << 31) * time.Second

// ParseDirectives reads all lines of a Cache-Control field. What is not known is left out. Of a directive that is there twice the
// shorter time counts; one whose time is malformed counts as zero, so that the response is stale
// (RFC 9111 section 4.2.1). Where no-cache and private name fields, they are about these alone.
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

// omit takes a list of field names, and reports false if there are none.
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

// Seconds reads delta-seconds (RFC 9111 section 1.2.2): digits and nothing else, or it is zero.
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

// malformed is the value of a directive with white space before its equals sign, which RFC 9111 section 5.2
// does not allow. It is neither a valid time nor a valid list of fields.
const malformed = "\x00"

// cutDirective takes the first directive off a list.
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

// cutValue takes a token or a quoted string off a list, with what comes after it up to a comma.
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
	return s[1:], "" // a quote that is not closed swallows the rest
}
