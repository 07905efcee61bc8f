package dunlin

import "github.com/dunlinhttp/dunlin/internal/exchange"

// Cookie returns the value of the named cookie, "" when the client sent none.
// Of several by the same name it returns the first, which has the most specific
// path (RFC 6265 section 5.4). A pair with bytes that a cookie may not hold is
// skipped.
func (r *Request) Cookie(name string) string {
	return exchange.Cookie(r.HeaderList("Cookie"), name)
}
