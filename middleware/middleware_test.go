package middleware_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// quiet is the configuration of apps that do not log.
var quiet = dunlin.Config{Logger: slog.New(slog.DiscardHandler)}

// newApp returns an app with act and the middleware at /items/{id}.
func newApp(act dunlin.Action, mw ...dunlin.Middleware) *dunlin.App {
	app := dunlin.New(quiet)
	app.Use(mw...)
	app.Handle("*", "/items/{id}", act)
	return app
}

// installed is newApp with features.
func installed(act dunlin.Action, features ...dunlin.Feature) *dunlin.App {
	app := dunlin.New(quiet)
	app.Install(features...)
	app.Handle("*", "/items/{id}", act)
	return app
}

// send requests /items/7 of an app with header fields given as alternating names and values.
func send(app http.Handler, method string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/items/7?secret=1", nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	return w
}

func text(s string) dunlin.Action {
	return func(*dunlin.Request) dunlin.Response { return dunlin.Text(s) }
}

// mustPanic reports an error if f does not panic.
func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: got no panic", what)
		}
	}()
	f()
}
