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

// endTimeout is how long a test waits for what its server still has to answer.
const endTimeout = 10 * time.Second

// Serve serves app on a port of 127.0.0.1 until the test ends, and returns the address: for what
// NewClient leaves out. The end is that of [dunlin.App.Shutdown], with ten seconds; the test fails if
// serving did. A test may shut the app down itself, also before it has begun to serve.
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
		_ = app.Shutdown(ctx) // what is left when the time has passed is closed
		if err := <-served; err != nil && !errors.Is(err, lifecycle.ErrStopped) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// OnEngines runs f as a subtest for each engine, with an app of the given settings. Where there are
// no event loops, that subtest is skipped. An engine serves connections: f sees it only through
// [Serve]. [NewClient] and [JSON] answer requests in memory, alike for every engine.
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
