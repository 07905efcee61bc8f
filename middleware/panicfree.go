package middleware

import (
	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The actions of these middleware run no user code except the wrapped action.
func init() {
	for _, m := range []dunlin.Middleware{new(requestID).around, new(corsRules).around, new(secureHeaders).around, new(rateLimiter).byAddress} {
		exchange.PanicFree(m)
	}
}
