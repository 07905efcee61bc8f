package middleware_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// The headers of a group's feature are on every response for its paths, and on no other response.
func TestFeatureOfGroup(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		cors := middleware.CORSConfig{Origins: []string{page}}
		api := app.Group("/api")
		api.Install(middleware.CORS(cors))
		api.Get("/items", text("hello"))
		api.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("it") })
		app.Get("/apian", text("hello"))
		app.Get("/", text("hello"))
		addr := serve()
		for _, c := range []struct {
			method, path string
			status       int
			has          bool
		}{
			{"GET", "/api/items", 200, true},
			{"POST", "/api/items", 405, true},
			{"GET", "/api/none", 404, true},
			{"GET", "/api", 404, true},
			{"GET", "/api/panic", 500, true},
			{"GET", "/apian", 200, false},
			{"GET", "/", 200, false},
			{"GET", "/none", 404, false},
			{"GET", "/API/items", 404, false},
		} {
			resp := get(t, c.method, addr, c.path, "Origin", page)
			if has := resp.Header.Get("Access-Control-Allow-Origin") == page; has != c.has || resp.StatusCode != c.status {
				t.Errorf("%s %s: got %d %v", c.method, c.path, resp.StatusCode, resp.Header)
			}
		}
	})
}
