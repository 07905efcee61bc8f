package middleware_test

import (
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Outer middleware sees the 500 of a panic below it, however the chain in between was composed.
func TestMiddlewareSeesPanics(t *testing.T) {
	id := middleware.RequestID("X-Request-ID").Middleware()
	edge := []dunlin.Feature{
		middleware.RequestID("X-Request-ID"), middleware.CORS(middleware.CORSConfig{Origins: []string{"*"}}), middleware.SecureHeaders(middleware.SecureHeadersConfig{}),
		middleware.RateLimit(middleware.RateLimitConfig{Limit: 1000, Window: 1e9}),
	}
	fails := func(*dunlin.Request) dunlin.Response { panic("asked for") }
	throws := func(dunlin.Action) dunlin.Action { return fails }
	for name, register := range map[string]func(*dunlin.App, dunlin.Middleware){
		"inside features": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Install(append([]dunlin.Feature{dunlin.Hooks{Wrap: outer}}, edge...)...)
			app.Get("/items/{id}", fails)
		},
		"action of a route": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(outer)
			for _, f := range edge {
				app.Use(f.Middleware())
			}
			app.Get("/items/{id}", fails)
		},
		"middleware inside features": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(throws)
			app.Install(append([]dunlin.Feature{dunlin.Hooks{Wrap: outer}}, edge...)...)
			app.Get("/items/{id}", text("never"))
		},
		"innermost feature": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Install(dunlin.Hooks{Wrap: outer}, dunlin.Hooks{Wrap: throws})
			app.Get("/items/{id}", text("never"))
		},
		"put together": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(outer)
			app.Get("/items/{id}", text("never"), func(next dunlin.Action) dunlin.Action { return id(throws(next)) })
		},
		"wrapped action": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(outer)
			app.Get("/items/{id}", id(fails))
		},
		"NotFound action": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(outer)
			app.NotFound(id(fails))
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := dunlin.New(quiet)
			open := 0
			register(app, func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					open++
					resp := next(r)
					open--
					return resp.Header("X-Outer", "seen")
				}
			})
			w := send(app, "GET")
			if w.Code != http.StatusInternalServerError || w.Header().Get("X-Outer") != "seen" || open != 0 {
				t.Errorf("got status %d, header %v, and %d middlewares that did not return", w.Code, w.Header(), open)
			}
		})
	}
}
