package interop_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// patience is the time limit of every wait that a failing test would otherwise never end.
const patience = 20 * time.Second

// onEngines serves an app on each engine and runs f with its URL.
func onEngines(t *testing.T, register func(*testing.T, *dunlin.App), f func(t *testing.T, url string)) {
	t.Helper()
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
		t.Run(engine.String(), func(t *testing.T) {
			if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
				t.Skip("the loop engine runs on Linux only")
			}
			f(t, serve(t, engine, func(app *dunlin.App) { register(t, app) }))
		})
	}
}

// serve serves an app until the test ends and returns its URL.
func serve(t *testing.T, engine dunlin.Engine, register func(*dunlin.App)) (url string) {
	t.Helper()
	return serveWith(t, dunlin.Config{Engine: engine}, register)
}

// serveWith is serve with other settings.
func serveWith(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (url string) {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	app := dunlin.New(config)
	register(app)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Serve(ln) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := app.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "http://" + ln.Addr().String()
}

// ask sends a request and returns the answer with its whole body. Headers are
// alternating names and values.
func ask(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	var src io.Reader
	if body != "" {
		src = strings.NewReader(body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, src)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(got)
}

// await receives from c.
func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: did not arrive", what)
	}
	return v
}
