package middleware

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/router"
)

// ambiguous returns the part of a canonical path that an upstream may interpret in another way than
// the router, or "". Some servers decode escaped slashes, treat backslashes as slashes, remove
// parameters from segments ("/admin;x"), or end a path at a NUL.
func ambiguous(path string) string {
	if _, dirty := router.Clean(path); dirty {
		return "an empty or dot segment"
	}
	for i := range len(path) {
		switch c := path[i]; {
		case c == '%' && strings.HasPrefix(path[i:], "%2F"):
			return "an escaped slash"
		case c == '\\':
			return "a backslash"
		case c == ';':
			return "a semicolon"
		case c < ' ' || c == 0x7f:
			return "a control character"
		case c >= 0xc0 && overlong(path[i:]):
			return "an overlong encoding"
		}
	}
	return ""
}

// overlong reports whether text begins with an overlong encoding of UTF-8 (RFC 3629 section 3): an
// old server may decode 0xC0 0xAF as a slash.
func overlong(text string) bool {
	if len(text) < 2 || text[1]&0xc0 != 0x80 {
		return false
	}
	switch text[0] {
	case 0xc0, 0xc1:
		return true
	case 0xe0:
		return text[1] < 0xa0
	case 0xf0:
		return text[1] < 0x90
	}
	return false
}

// ownNamed returns the fields that Connection names and that middleware has set by WithHeaders. The proxy forwards them, so
// that clients cannot remove them.
func ownNamed(r *dunlin.Request) (names []string) {
	for option := range strings.SplitSeq(r.HeaderList("Connection"), ",") {
		option = strings.Trim(option, " \t")
		if option != "" && !usualOption(option) && !removed(option) && isField(option, inside.Overlaid(r)...) {
			names = append(names, http.CanonicalHeaderKey(option))
		}
	}
	return names
}

// removed reports whether a Proxy always removes or sets a field.
func removed(name string) bool {
	return isField(name, "Connection", "Proxy-Authenticate", "Proxy-Authorization", "Trailer", "Transfer-Encoding", "Forwarded",
		"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto")
}

// usualOption reports whether an option of Connection names no field, or a field that a [Proxy] always
// removes.
func usualOption(option string) bool {
	return isField(option, "keep-alive", "close", "upgrade", "te", "http2-settings", "proxy-connection")
}
