package middleware

import (
	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The actions of these run no code of users but the action behind them.
func init() {
	for _, m := range []dunlin.Middleware{new(requestID).around, new(corsRules).around, new(secureHeaders).around, new(rateLimiter).byAddress} {
		exchange.Calm(m)
	}
}
