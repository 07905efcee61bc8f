package middleware

import (
	"net/http/httptest"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Middleware that is created for each request is not retained by the middleware it is joined with, beyond a fixed number, and
// still works.
func TestJoinedMiddlewareIsBounded(t *testing.T) {
	id := &requestID{header: "X-Id", answer: dunlin.NewIDHeader("X-Id")}
	app := dunlin.New(dunlin.Config{})
	app.Use(func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			return CORS(CORSConfig{Origins: []string{"https://" + r.Host()}})(next)(r)
		}
	}, id.around)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("a") })
	for range 2 * mostJoints {
		req := httptest.NewRequest("GET", "https://tenant.example/", nil)
		req.Header.Set("Origin", "https://tenant.example")
		req.Header.Set("X-Id", "one")
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if h := w.Header(); h.Get("X-Id") != "one" || h.Get("Access-Control-Allow-Origin") != "https://tenant.example" || h.Get("Vary") != "Origin" {
			t.Fatal(h)
		}
	}
	if n := len(id.known); n != mostJoints {
		t.Errorf("%d of what RequestID was joined with are kept, want %d", n, mostJoints)
	}
}
