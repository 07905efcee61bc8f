package middleware_test

import (
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Outer middleware sees the 500 of a panic below it, however the chain in between was composed.
func TestMiddlewareSeesPanics(t *testing.T) {
	id := middleware.RequestID("X-Request-ID")
	edge := []dunlin.Middleware{
		id, middleware.CORS(middleware.CORSConfig{Origins: []string{"*"}}), middleware.SecureHeaders(middleware.SecurityConfig{}),
		middleware.RateLimit(middleware.Rate{Limit: 1000, Window: 1e9}),
	}
	fails := func(*dunlin.Request) dunlin.Response { panic("asked for") }
	throws := func(dunlin.Action) dunlin.Action { return fails }
	for name, register := range map[string]func(*dunlin.App, dunlin.Middleware){
		"behind each": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(append([]dunlin.Middleware{outer}, edge...)...)
			app.Get("/items/{id}", fails)
		},
		"of the route": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(outer)
			app.Get("/items/{id}", fails, edge...)
		},
		"in middleware behind each": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(append([]dunlin.Middleware{outer}, append(edge, throws)...)...)
			app.Get("/items/{id}", text("never"))
		},
		"put together": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(outer)
			app.Get("/items/{id}", text("never"), func(next dunlin.Action) dunlin.Action { return id(throws(next)) })
		},
		"the action put together": func(app *dunlin.App, outer dunlin.Middleware) {
			app.Use(outer)
			app.Get("/items/{id}", id(fails))
		},
		"of what is not found": func(app *dunlin.App, outer dunlin.Middleware) {
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
				t.Errorf("%d, %v, %d that have not come back", w.Code, w.Header(), open)
			}
		})
	}
}
