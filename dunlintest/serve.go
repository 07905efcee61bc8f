package dunlintest

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// endTimeout is the time limit for the shutdown at the end of a test.
const endTimeout = 10 * time.Second

// Serve serves app on a port of 127.0.0.1 until the test ends, and returns the address. Use it to test what a client of
// NewClient cannot do. At the end of the test it calls [dunlin.App.Shutdown] with a limit of ten seconds. The test fails
// if App.Serve returns an error. A test may call Shutdown itself, even before the app serves.
func Serve(t testing.TB, app *dunlin.App) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		_ = app.Shutdown(ctx) // closes the connections that are open at the deadline
		if err := <-served; err != nil && !errors.Is(err, lifecycle.ErrStopped) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// OnEngines runs f as a subtest for each engine, with an app with the given settings. On systems without event loops it
// skips the loop engine. f must use [Serve] to test an engine, because [NewClient] and [JSON] send requests in memory,
// without an engine.
//
//	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
//		routes(app)
//		resp, err := http.Get("http://" + dunlintest.Serve(t, app) + "/users/7")
//		…
//	})
func OnEngines(t *testing.T, config dunlin.Config, f func(t *testing.T, app *dunlin.App)) {
	t.Helper()
	for _, engine := range []dunlin.Engine{dunlin.EngineLoop, dunlin.EngineStd} {
		t.Run(engine.String(), func(t *testing.T) {
			if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
				t.Skip("the loop engine runs on Linux only")
			}
			config := config
			config.Engine = engine
			f(t, dunlin.New(config))
		})
	}
}
