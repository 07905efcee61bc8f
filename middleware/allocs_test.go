package middleware_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/middleware"
)

// void is a response writer that allocates nothing.
type void struct{ header http.Header }

func (v void) Header() http.Header         { return v.header }
func (v void) Write(b []byte) (int, error) { return len(b), nil }
func (v void) WriteHeader(int)             {}

// TestAllocations bounds the allocations that each middleware adds to a request.
func TestAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	req := httptest.NewRequest("GET", "/items/7", nil)
	req.Header.Set("X-Request-ID", "a1")
	measure := func(with func(*dunlin.App)) float64 {
		app, w := dunlin.New(quiet), void{http.Header{}}
		with(app)
		app.Get("/items/{id}", text("hello"))
		return testing.AllocsPerRun(2000, func() { app.ServeHTTP(w, req) })
	}
	bare := measure(func(*dunlin.App) {})
	accessLog := 2.0 // the address as text, and slog's growth beyond five attributes
	if strings.HasPrefix(runtime.Version(), "go1.27") {
		accessLog = 3 // encoding/json of go1.27 allocates for a fraction
	}
	for name, test := range map[string]struct {
		with func(*dunlin.App)
		most float64
	}{
		"RequestID": {func(app *dunlin.App) { app.Install(middleware.RequestID("X-Request-ID")) }, 0},
		"AccessLog": {func(app *dunlin.App) {
			app.Install(middleware.AccessLog(middleware.AccessLogConfig{Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))}))
		}, accessLog},
		"ETag": {func(app *dunlin.App) { app.Use(middleware.ETag()) }, 1}, // the entity tag
	} {
		n := measure(test.with) - bare
		if n > test.most {
			t.Errorf("%s adds %v allocations to a request, want at most %v", name, n, test.most)
		}
	}
}
