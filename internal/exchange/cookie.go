package exchange

import "strings"

// Cookie returns the value of the first cookie with a name in a Cookie header (RFC 6265 section 4.2.1), or "". Pairs with
// invalid bytes are skipped.
func Cookie(header, name string) string {
	for header != "" {
		var pair string
		pair, header, _ = strings.Cut(header, ";")
		n, v, found := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !found || strings.TrimRight(n, " \t") != name {
			continue
		}
		if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
			v = v[1 : len(v)-1]
		}
		if isCookieText(v) {
			return v
		}
	}
	return ""
}

// isCookieText reports whether v has only bytes allowed in a cookie value. As in net/http, space and comma are allowed, since
// clients send them.
func isCookieText(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c < ' ' || c >= 0x7f || c == '"' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}
