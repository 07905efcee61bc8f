package suite

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/stats"
)

// outcomes counts responses by route and class of status: "route 4xx".
type outcomes map[string]uint64

// countedBy returns the counters of an app.
func countedBy(app *dunlin.App) outcomes {
	all, s := outcomes{}, app.Stats()
	for _, r := range append(s.Routes, s.Unmatched) {
		for class, n := range []uint64{r.Status.Dropped, r.Status.Informational, r.Status.Success, r.Status.Redirection, r.Status.ClientError, r.Status.ServerError} {
			if n > 0 {
				all[fmt.Sprintf("%s %dxx", r.Pattern, class)] += n
			}
		}
	}
	return all
}

// Each response is counted once, by the class of its status and by its route, and observed once. This includes responses that
// no action made, with and without an observer.
func TestEachAnswerIsObservedOnce(t *testing.T) {
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprint("watched ", watched), func(t *testing.T) {
			OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
				everyAnswerOnce(t, engine, watched)
			})
		})
	}
}

func everyAnswerOnce(t *testing.T, engine dunlin.Engine, watched bool) {
	over := make(chan struct{})
	var mu sync.Mutex
	observed := outcomes{}
	config := dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxHeaders: 20, MaxBody: 1000}, Timeouts: dunlin.Timeouts{Body: 100 * time.Millisecond}, Logger: slog.New(slog.DiscardHandler), RouteStats: stats.On}
	app, addr := startCounted(t, config, func(app *dunlin.App) {
		if watched {
			app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
				class := info.Status() / 100
				if info.Dropped() {
					class = 0
				}
				mu.Lock()
				defer mu.Unlock()
				observed[fmt.Sprintf("%s %dxx", info.Route(), class)]++
			}})
		}
		app.Get("/", Text("ok"))
		app.Post("/form", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		})
		app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("here") })
		app.Get("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
		app.Get("/late", func(*dunlin.Request) dunlin.Response { <-over; return dunlin.Text("late") }).Timeout(10 * time.Millisecond)
		app.Get("/exit", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); return dunlin.Empty() })
		app.Get("/cut", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
				panic("it")
			})
		})
		app.Get("/hijack", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n")
			_ = conn.Close()
		})))
	})
	defer close(over)
	want := outcomes{}
	var fields strings.Builder
	for i := range 30 {
		fmt.Fprintf(&fields, "X-%d: y\r\n", i)
	}
	for _, c := range []struct {
		name, raw, loop, std string // "" where net/http's own server answers without calling the app
	}{
		{"as it should", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "/ 2xx", "/ 2xx"},
		{"nothing there", "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", " 4xx", " 4xx"},
		{"no such method", "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", " 4xx", " 4xx"},
		{"options", "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n", " 2xx", " 2xx"},
		{"nonsense", "nonsense\r\n\r\n", " 4xx", ""},
		{"no host", "GET / HTTP/1.1\r\n\r\n", " 4xx", ""},
		{"two lengths", "POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", " 4xx", ""},
		{"too many fields", "GET / HTTP/1.1\r\nHost: a\r\n" + fields.String() + "\r\n", " 4xx", " 4xx"},
		{"an enormous head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 100_000) + "\r\n\r\n", " 4xx", ""},
		{"too long a body", "POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n", "/form 4xx", "/form 4xx"},
		{"no chunks", "POST /form HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnothing\r\n\r\n", " 4xx", "/form 4xx"},
		{"half a body", "POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", "/form 4xx", "/form 4xx"},
		{"the end of a goroutine", "GET /exit HTTP/1.1\r\nHost: a\r\n\r\n", "/exit 5xx", "/exit 0xx"},
		{"panic", "GET /panic HTTP/1.1\r\nHost: a\r\n\r\n", "/panic 5xx", "/panic 5xx"},
		{"abort", "GET /abort HTTP/1.1\r\nHost: a\r\n\r\n", "/abort 0xx", "/abort 0xx"},
		{"late", "GET /late HTTP/1.1\r\nHost: a\r\n\r\n", "/late 5xx", "/late 5xx"},
		{"cut off", "GET /cut HTTP/1.1\r\nHost: a\r\n\r\n", "/cut 0xx", "/cut 0xx"},
		{"hijacked", "GET /hijack HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n", "/hijack 1xx", "/hijack 1xx"},
	} {
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, c.raw)   // the server may refuse before it has read all of it
		_, _ = conn.Read(make([]byte, 4096)) // a response, or the end
		_ = conn.Close()
		outcome := c.loop
		if engine == dunlin.EngineStd {
			outcome = c.std
		}
		if outcome != "" {
			want[outcome]++
		}
		counted := outcomes{}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%q: counted %v, want %v", c.name, counted, want)
			}
		})
		Soon(t, fmt.Sprintf("%q is counted", c.name), func() bool { counted = countedBy(app); return maps.Equal(counted, want) })
		if watched {
			Soon(t, fmt.Sprintf("%q is observed: %v", c.name, want), func() bool {
				mu.Lock()
				defer mu.Unlock()
				return maps.Equal(observed, want)
			})
		}
	}
	Soon(t, "none is in flight", func() bool { return app.Stats().Actions.InFlight == 0 })
}
