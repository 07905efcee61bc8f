package suite

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// computeBriefly uses the processor for longer than the shortest detectable wait.
func computeBriefly() {
	for began := time.Now(); time.Since(began) < 50*time.Microsecond; {
	}
}

// onLoops runs f with each protocol of the loop engine.
func onLoops(t *testing.T, f func(t *testing.T)) {
	for _, a := range Adapters {
		if a.Engine == dunlin.EngineLoop {
			a.On(t, func(t *testing.T, _ dunlin.Engine) { f(t) })
		}
	}
}

// A route whose actions wait briefly is learned within a few requests. A route whose actions compute for the same time is not.
func TestShortWaitsAreLearned(t *testing.T) {
	onLoops(t, func(t *testing.T) {
		var switches atomic.Int64 // of all threads: one request is served at a time
		wait := func() {
			computeBriefly()
			switches.Add(1)
		}
		app, addr := startCounted(t, dunlin.Config{}, func(app *dunlin.App) {
			server := ext.PerApp[*exchange.Server](app, exchange.ServerKey{}, nil)
			server.Counts = exchange.Counts{Switches: switches.Load, Pauses: func() int64 { return 0 }}
			app.Get("/waits", func(*dunlin.Request) dunlin.Response {
				wait()
				return dunlin.NoContent()
			})
			app.Get("/computes", func(*dunlin.Request) dunlin.Response {
				computeBriefly()
				return dunlin.NoContent()
			})
			app.Get("/streams", func(*dunlin.Request) dunlin.Response {
				wait()
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					_, err := io.WriteString(w, "x")
					return err
				})
			})
		})
		for _, test := range []struct {
			path   string
			learns bool
		}{{"/waits", true}, {"/computes", false}, {"/streams", true}} {
			for range 60 {
				if status := statusOf(t, "GET", "http://"+addr+test.path); status != 204 && status != 200 {
					t.Fatalf("GET %s: answered %d", test.path, status)
				}
			}
			if s := statsOf(t, app, test.path); s.Blocking != test.learns {
				t.Errorf("%s: got %+v", test.path, s)
			}
		}
	})
}
