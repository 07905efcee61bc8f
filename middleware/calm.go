package middleware

import "github.com/dunlinhttp/dunlin/internal/exchange"

// What these return runs no code of users but the action behind it.
func init() {
	exchange.Calm(RequestID("X")(nil))
	exchange.Calm(CORS(CORSConfig{Origins: []string{"*"}})(nil))
	exchange.Calm(SecureHeaders(SecurityConfig{})(nil))
	exchange.Calm(new(rateLimiter).byAddress(nil))
}
