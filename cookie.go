package dunlin

import "github.com/dunlinhttp/dunlin/internal/exchange"

// Cookie returns the value of the named cookie, or "" if the client sent none. If several have the
// name, it returns the first, which has the most specific path (RFC 6265 section 5.4). It skips a
// pair with bytes that are invalid in a cookie.
func (r *Request) Cookie(name string) string {
	return exchange.Cookie(r.HeaderList("Cookie"), name)
}
