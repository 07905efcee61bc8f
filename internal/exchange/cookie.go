package exchange

import "strings"

// Cookie returns the value of the first cookie of a name in what a client has sent as Cookie (RFC 6265
// section 4.2.1), "" for none. A pair with bytes that a cookie may not hold is skipped.
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

// isCookieText reports whether v holds only what a cookie value may. Like net/http it lets space and comma pass,
// which clients do send.
func isCookieText(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c < ' ' || c >= 0x7f || c == '"' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}
