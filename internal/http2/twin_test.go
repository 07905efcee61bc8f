package http2_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A reference implementation of Request: the rules of RFC 9113 section 8 written with strings and regular expressions, with the limits
// of
// smallLimits.

var (
	lowerToken   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9a-z-]+$")
	anyToken     = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	plainText    = regexp.MustCompile(`^(?:[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?)?$`)
	valueText    = regexp.MustCompile(`^[^\x00-\x08\x0a-\x1f\x7f]*$`)
	targetBytes  = regexp.MustCompile(`^[!-"$-~]*$`)
	brokenEscape = regexp.MustCompile(`%(?:[^0-9A-Fa-f]|[0-9A-Fa-f][^0-9A-Fa-f]|$|.$)`)
	digits       = regexp.MustCompile(`^[0-9]+$`)
	portAtEnd    = regexp.MustCompile(`:[0-9]+$`)
)

// plainOutcome returns the outcome of a request.
func plainOutcome(fields []string) string {
	pseudo := map[string]string{}
	var host []string
	var lengths []string
	regular, tooLarge := false, false
	status := ""
	refuse := func(s string) {
		if status == "" {
			status = s
		}
	}
	work := 0
	for _, f := range fields {
		work += len(f) - len(": ") + 32
	}
	if work > 10_000 {
		return "field block that expands to many times the size allowed (RFC 7541 section 7.3)"
	}
	size := 0
	var lines []string
	for _, f := range fields {
		name, value, _ := strings.Cut(f[1:], ": ")
		name = f[:1] + name
		size += len(name) + len(value) + 32
		if !slices.Contains([]string{":method", ":scheme", ":path", ":status"}, name) && (name != "cookie" || !slices.Contains(lines, name)) {
			lines = append(lines, name)
		}
		if size > 500 || len(lines) > 6 {
			tooLarge = true
			break
		}
		if strings.HasPrefix(name, ":") {
			_, seen := pseudo[name]
			if regular || seen || !slices.Contains([]string{":method", ":scheme", ":authority", ":path", ":protocol"}, name) || !plainText.MatchString(latin(value)) {
				return "malformed"
			}
			pseudo[name] = value
			continue
		}
		regular = true
		if !lowerToken.MatchString(name) || !valueText.MatchString(latin(value)) {
			return "malformed"
		}
		value = strings.Trim(value, " \t")
		switch name {
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			return "malformed"
		case "te":
			if !foldASCII(value, "trailers") {
				return "malformed"
			}
		case "host":
			host = append(host, value)
		case "content-length":
			lengths = append(lengths, value)
		case "expect":
			for member := range strings.SplitSeq(value, ",") {
				if member = strings.Trim(member, " \t"); member != "" && !foldASCII(member, "100-continue") {
					refuse("417")
				}
			}
		}
	}
	if len(host) > 1 || len(lengths) > 1 {
		return "malformed"
	}
	if len(lengths) == 1 {
		n, err := strconv.ParseUint(lengths[0], 10, 64)
		if !digits.MatchString(lengths[0]) || err != nil || n > math.MaxInt64 {
			return "malformed"
		}
	}
	if tooLarge {
		refuse("431")
		return status
	}
	return plainTarget(pseudo, strings.Join(host, ""), refuse, &status)
}

// plainTarget checks the pseudo-header fields.
func plainTarget(pseudo map[string]string, host string, refuse func(string), status *string) string {
	method := pseudo[":method"]
	if !anyToken.MatchString(method) {
		return "malformed"
	}
	if len(method) > 32 {
		refuse("501")
	}
	authority, named := pseudo[":authority"]
	if named && host != "" && !foldASCII(authority, host) {
		return "malformed"
	}
	if !named {
		authority = host
	}
	if authority != "" && !http1.ValidAuthority([]byte(authority)) {
		refuse("400")
	}
	if _, ok := pseudo[":protocol"]; ok {
		return "malformed"
	}
	scheme, hasScheme := pseudo[":scheme"]
	path, hasPath := pseudo[":path"]
	if method == "CONNECT" {
		if hasScheme || hasPath || pseudo[":authority"] == "" {
			return "malformed"
		}
		if !portAtEnd.MatchString(authority) {
			refuse("400")
		}
		return orOK(*status)
	}
	if !hasScheme || !hasPath || !foldASCII(scheme, "http") && !foldASCII(scheme, "https") {
		return "malformed"
	}
	if authority == "" {
		refuse("400")
	}
	if !strings.HasPrefix(path, "/") && path != "*" {
		return "malformed"
	}
	if path == "*" && method != "OPTIONS" {
		refuse("400")
	}
	if len(path) > 32 {
		refuse("414")
	}
	cut, _, _ := strings.Cut(path, "?")
	if !targetBytes.MatchString(path) || brokenEscape.MatchString(cut) {
		refuse("400")
	}
	return orOK(*status)
}

func orOK(status string) string {
	if status == "" {
		return "ok"
	}
	return status
}

// latin converts each byte to a rune, for expressions that match bytes.
func latin(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func foldASCII(a, b string) bool {
	lower := func(s string) string {
		return strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}, latin(s))
	}
	return lower(a) == lower(b)
}
