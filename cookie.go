package dunlin

import "github.com/dunlinhttp/dunlin/internal/exchange"

// Cookie returns the value of the named cookie, or "" if the client did not send it. If several cookies
// have the name, it returns the first, which has the most specific path (RFC 6265 section 5.4). It skips
// a cookie with bytes that are invalid in a cookie.
func (r *Request) Cookie(name string) string {
	return exchange.Cookie(r.HeaderList("Cookie"), name)
}
