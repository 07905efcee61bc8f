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

// Serve serves app on a port of 127.0.0.1 until the test ends, and returns the address. Use it for features that
// NewClient does not have. At the end of the test it calls [dunlin.App.Shutdown] with a limit of ten seconds. The test
// fails if serving failed. A test may shut down the app itself, also before it serves.
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
		_ = app.Shutdown(ctx) // connections still open at the deadline are closed
		if err := <-served; err != nil && !errors.Is(err, lifecycle.ErrStopped) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// OnEngines runs f as a subtest for each engine, with an app of the given settings. Systems without event loops skip
// the loop engine. An engine serves connections, so f must use [Serve] to reach it. [NewClient] and [JSON] send
// requests in memory, which do not use an engine.
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
