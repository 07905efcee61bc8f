package middleware

import (
	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The actions of these run no code of users but the action behind them.
func init() {
	exchange.Calm(RequestID("X"))
	exchange.Calm(CORS(CORSConfig{Origins: []string{"*"}}))
	exchange.Calm(SecureHeaders(SecurityConfig{}))
	exchange.Calm(dunlin.Middleware(new(rateLimiter).byAddress))
}
