package middleware_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// The headers of a group are on every response for its paths, and on no other response.
func TestUnder(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		cors := middleware.CORSConfig{Origins: []string{page}}
		app.Policy(middleware.Under("/api/", middleware.SendCORS(cors)))
		api := app.Group("/api", middleware.CORS(cors))
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
				t.Errorf("%s %s: %d, %v", c.method, c.path, resp.StatusCode, resp.Header)
			}
		}
	})
	mustPanic(t, "no path", func() { middleware.Under("api", middleware.SendCORS(middleware.CORSConfig{Origins: []string{page}})) })
	mustPanic(t, "a parameter", func() {
		middleware.Under("/{id}", middleware.SendCORS(middleware.CORSConfig{Origins: []string{page}}))
	})
	mustPanic(t, "no policy", func() { middleware.Under("/api", nil) })
}

func ExampleUnder() {
	app := dunlin.New(dunlin.Config{})
	cors := middleware.CORSConfig{Origins: []string{"https://page.example"}}
	app.Policy(middleware.Under("/api", middleware.SendCORS(cors)))

	for _, path := range []string{"/api/none", "/none"} {
		req := httptest.NewRequest("GET", path, nil)
		req.Header.Set("Origin", "https://page.example")
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		fmt.Println(w.Code, w.Header().Get("Access-Control-Allow-Origin"))
	}
	// Output:
	// 404 https://page.example
	// 404
}
