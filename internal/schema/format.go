package schema

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// format is a format of JSON Schema or of OpenAPI's registry.
type format struct {
	check func(string) bool // the check; nil for a format that only annotates
	name  string
}

var formats = map[string]format{
	"date-time":     {isDateTime, "a time such as 2026-01-31T15:04:05Z"},
	"date":          {isDate, "a date such as 2026-01-31"},
	"time":          {isTime, "a time of day such as 15:04:05Z"},
	"duration":      {isDuration, "a duration of ISO 8601 such as P3DT4H"},
	"email":         {isEmail, "an email address"},
	"hostname":      {isHostname, "a host name"},
	"ipv4":          {isIPv4, "an IPv4 address"},
	"ipv6":          {isIPv6, "an IPv6 address"},
	"uri":           {isURI, "an absolute URI"},
	"uri-reference": {isURIReference, "a URI or a reference to one"},
	"uuid":          {isUUID, "a UUID"},
	"json-pointer":  {isJSONPointer, "a JSON pointer"},
	"byte":          {isBase64, "base64"},

	"password": {}, "binary": {}, "html": {}, "commonmark": {}, "char": {}, "media-range": {}, "regex": {},

	"int8":  {nil, "an integer of 8 bits"},
	"int16": {nil, "an integer of 16 bits"}, "int32": {nil, "an integer of 32 bits"}, "int64": {nil, "an integer of 64 bits"},
	"uint8":  {nil, "an integer from 0 to 255"},
	"uint16": {nil, "an integer of 16 bits without sign"}, "uint32": {nil, "an integer of 32 bits without sign"}, "uint64": {nil, "an integer of 64 bits without sign"},
	"float": {nil, "a number of 32 bits"}, "double": {nil, "a number of 64 bits"},
	"go-duration": {isGoDuration, "a duration such as 1m30s"},
}

var (
	ownFormats   = map[string]format{}
	ownFormatsMu sync.RWMutex
)

// AddFormat registers a format for types that are compiled later. The argument what describes a
// value of the format in messages, such as "a UUID". AddFormat returns false if the format already
// exists.
func AddFormat(name, what string, check func(string) bool) bool {
	if _, known := formats[name]; known {
		return false
	}
	ownFormatsMu.Lock()
	defer ownFormatsMu.Unlock()
	if _, known := ownFormats[name]; known {
		return false
	}
	ownFormats[name] = format{check, what}
	return true
}

func findFormat(name string) (format, bool) {
	if f, ok := formats[name]; ok {
		return f, true
	}
	ownFormatsMu.RLock()
	defer ownFormatsMu.RUnlock()
	f, ok := ownFormats[name]
	return f, ok
}

func formatName(name string) string {
	if f, ok := findFormat(name); ok && f.name != "" {
		return f.name
	}
	return "in the format " + name
}

// isDateTime reports whether s is a date-time of RFC 3339. time.Parse accepts slightly more. The
// letters T and Z may be in lower case. Leap seconds are refused, because package time does not
// support them.
func isDateTime(s string) bool {
	if len(s) > longestTime {
		return false
	}
	s = upperTime(s)
	if len(s) < len("2006-01-02T15:04:05Z") || s[10] != 'T' || !strictClock(s[11:]) {
		return false
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// longestTime is the maximum length of a time, in bytes. It limits the errors of package time, which
// contain the text.
const longestTime = 100

// upperTime returns a time with T and Z in upper case, as package time requires. RFC 3339 also
// permits lower case.
func upperTime(s string) string {
	if n := len(s); n > 10 && (s[10] == 't' || s[n-1] == 'z') {
		return strings.ToUpper(s)
	}
	return s
}

// strictClock checks s, the part of a date-time after the T, for what time.Parse accepts and RFC
// 3339 does not: hours of one digit, commas, and large offsets from UTC.
func strictClock(s string) bool {
	return len(s) > 8 && s[2] == ':' && s[5] == ':' && strings.IndexByte(s, ',') < 0 && offsetOK(s)
}

// offsetOK reports whether the offset from UTC has at most 23 hours and at most 59 minutes.
func offsetOK(s string) bool {
	if s[len(s)-1] == 'Z' {
		return true
	}
	if len(s) < 6 {
		return false
	}
	o := s[len(s)-6:]
	return (o[0] == '+' || o[0] == '-') && o[3] == ':' && o[1:3] <= "23" && o[4:6] <= "59"
}

func isDate(s string) bool {
	if len(s) != len(time.DateOnly) {
		return false
	}
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func isTime(s string) bool { return isDateTime("2000-01-01T" + s) }

var durationForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^P(\d+W|(\d+Y(\d+M(\d+D)?)?|\d+M(\d+D)?|\d+D)?(T(\d+H(\d+M(\d+S)?)?|\d+M(\d+S)?|\d+S))?)$`)
})

func isDuration(s string) bool { return len(s) > 1 && durationForm().MatchString(s) }

func isGoDuration(s string) bool {
	if len(s) > longestTime {
		return false
	}
	_, err := time.ParseDuration(s)
	return err == nil
}

// isEmail reports whether s is an email address that HTML's input of type email accepts and that is
// short enough for delivery. The local part must not have quotes, comments, or a dot at an end or
// next to another dot.
func isEmail(s string) bool {
	at := 0
	for at < len(s) && classes[s[at]]&inLocalPart != 0 {
		if s[at] == '.' && (at == 0 || s[at-1] == '.') {
			return false
		}
		at++
	}
	return 1 <= at && at <= 64 && at < len(s) && s[at] == '@' && s[at-1] != '.' && isHostname(s[at+1:])
}

// The contexts in which a byte may be permitted.
const (
	inLabel     = 1 << iota // a label of a host name
	inLocalPart             // the local part of an email address, without quotes
)

// classes has the contexts in which each byte is permitted.
var classes = func() (table [256]uint8) {
	for c := range table {
		if isAlnum(byte(c)) || c == '-' {
			table[c] |= inLabel
		}
		if isAlnum(byte(c)) || strings.IndexByte("!#$%&'*+/=?^_`{|}~-.", byte(c)) >= 0 {
			table[c] |= inLocalPart
		}
	}
	return table
}()

func isAlnum(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

// isHostname reports whether s is a host name (RFC 1123 section 2.1). A label is 1 to 63 letters,
// digits and hyphens, without a hyphen at either end.
func isHostname(s string) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	start, last := 0, byte('-') // last is a hyphen at the start of each label, so that an empty label is refused
	for i := range len(s) {
		c := s[i]
		switch {
		case classes[c]&inLabel != 0:
			if c == '-' && i == start {
				return false
			}
		case c != '.' || last == '-' || i-start > 63:
			return false
		default:
			start, c = i+1, '-'
		}
		last = c
	}
	return last != '-' && len(s)-start <= 63
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && uriText(s)
}

func isURIReference(s string) bool {
	_, err := url.Parse(s)
	return err == nil && uriText(s)
}

// uriText returns false for characters that are not permitted in a URI. Package net/url accepts some
// of them.
func uriText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("<>\"{}|\\^`", c) >= 0 {
			return false
		}
	}
	return true
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

func isJSONPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && !strings.ContainsAny(s, "\r\n")
}
