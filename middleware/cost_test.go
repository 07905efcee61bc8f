package middleware_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// BenchmarkAlone has what a middleware costs by itself: the chain of one, run in an action, so that nothing of the engine
// is counted. Subtract bare.
func BenchmarkAlone(b *testing.B) {
	cases := append([]edgeCase{{name: "bare", mw: []dunlin.Middleware{func(next dunlin.Action) dunlin.Action { return next }}}}, edgeCases()...)
	plenty := middleware.Rate{Limit: 1_000_000_000, Window: time.Hour, Burst: 1_000_000_000}
	cases = append(cases, edgeCase{name: "RateLimit", mw: []dunlin.Middleware{middleware.RateLimit(plenty)}})
	for _, c := range cases {
		if len(c.mw) == 0 {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			act := c.mw[0](text("Hello, World!"))
			config := quiet
			config.TrustedProxies = []string{"192.0.2.0/24"}
			app := dunlin.New(config)
			app.Post("/items/{id}", func(r *dunlin.Request) dunlin.Response {
				b.ReportAllocs()
				var resp dunlin.Response
				for b.Loop() {
					resp = act(r)
				}
				return resp
			})
			app.ServeHTTP(void{http.Header{}}, c.request())
		})
	}
}
