package dunlin

import "strings"

// Cookie returns the value of the named cookie, "" when the client sent none.
// Of several by the same name it returns the first, which has the most specific
// path (RFC 6265 section 5.4). A pair with bytes that a cookie may not hold is
// skipped.
func (r *Request) Cookie(name string) string {
	v, _ := findCookie(r.HeaderList("Cookie"), name)
	return v
}

// findCookie looks a name up in what the client has sent as cookies, RFC 6265
// section 4.2.1.
func findCookie(header, name string) (string, bool) {
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
		if cookieText(v) {
			return v, true
		}
	}
	return "", false
}

// cookieText reports whether v holds only what a cookie value may. Like
// net/http it lets space and comma pass, which clients do send.
func cookieText(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c < ' ' || c >= 0x7f || c == '"' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}
