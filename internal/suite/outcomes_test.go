package suite

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/stats"
)

// endings returns the number of requests for each outcome: "route: method status scheme".
func endings(app *dunlin.App) map[string]uint64 {
	all, s := map[string]uint64{}, app.Stats()
	for _, r := range append(s.Routes, s.Unmatched) {
		for _, counted := range r.Ended {
			e := exchange.EndedOf(counted)
			status, scheme := fmt.Sprint(e.Status), "http"
			if e.Dropped {
				status = "dropped"
			}
			if e.Secure {
				scheme = "https"
			}
			all[fmt.Sprintf("%s: %s %s %s", r.Pattern, cmp.Or(e.Method, "other"), status, scheme)] += e.Latency.Count()
		}
	}
	return all
}

// Requests are counted by method, by the status that the client gets and by scheme, on each engine, by each protocol, with and
// without an observer.
func TestRequestsAreCountedByOutcome(t *testing.T) {
	for name, by := range map[string]func(*http.Protocols){"HTTP1": HTTP1, "HTTP2": HTTP2} {
		for _, watched := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", watched ", watched), func(t *testing.T) {
				OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
					t.Run("TLS", func(t *testing.T) { countedByEnd(t, engine, by, true, watched) })
					t.Run("clear text", func(t *testing.T) {
						if name == "HTTP2" {
							countedByEnd(t, engine, H2C, false, watched)
						} else {
							countedByEnd(t, engine, by, false, watched)
						}
					})
				})
			})
		}
	}
}

func countedByEnd(t *testing.T, engine dunlin.Engine, by func(*http.Protocols), secure, watched bool) {
	over := make(chan struct{})
	defer close(over)
	config := dunlin.Config{
		Engine: engine, H2C: dunlin.H2CPriorKnowledge, RouteStats: stats.On, Logger: slog.New(slog.DiscardHandler),
		Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}},
	}
	var app *dunlin.App
	register := func(a *dunlin.App) {
		app = a
		if watched {
			app.Install(dunlin.Hooks{Observe: func(*dunlin.AnswerInfo) {}})
		}
		app.Get("/x", Text("ok"))
		app.Post("/x", func(*dunlin.Request) dunlin.Response { return dunlin.Created("/x/1") })
		app.Handle("*", "/any", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
		app.Get("/teapot", func(*dunlin.Request) dunlin.Response { return dunlin.Text("no").Status(http.StatusTeapot) })
		app.Get("/beyond", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(777) })))
		app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("here") })
		app.Post("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
		app.Get("/late", func(*dunlin.Request) dunlin.Response { <-over; return dunlin.Text("late") }).Timeout(10 * time.Millisecond)
	}
	scheme := "http"
	var addr string
	var client *http.Client
	if secure {
		a, trusted, _ := StartTLS(t, config, register)
		addr, scheme, client = a, "https", Client(t, trusted, by)
	} else {
		addr, _ = Start(t, config, register)
		client = Client(t, nil, by)
	}
	want := map[string]uint64{}
	for _, c := range []struct{ method, path, ends string }{
		{"GET", "/x", "/x: GET 200"},
		{"HEAD", "/x", "/x: HEAD 200"},
		{"POST", "/x", "/x: POST 201"},
		{"QUERY", "/any", "/any: QUERY 204"},
		{"ODD", "/any", "/any: other 204"},
		{"PATCH", "/any", "/any: PATCH 204"},
		{"GET", "/teapot", "/teapot: GET 418"},
		{"GET", "/beyond", "/beyond: GET 0"},
		{"GET", "/nowhere", ": GET 404"},
		{"ODDER", "/nowhere", ": other 404"},
		{"DELETE", "/x", ": DELETE 405"},
		{"GET", "/panic", "/panic: GET 500"},
		{"POST", "/abort", "/abort: POST dropped"}, // a client may retry a GET
		{"GET", "/late", "/late: GET 503"},
	} {
		for _, proxied := range []bool{false, true} {
			if proxied && c.path == "/late" && !watched {
				continue // the scheme set by the action is gone: that of the connection counts
			}
			req, err := http.NewRequest(c.method, scheme+"://"+addr+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			seen := scheme
			if proxied {
				req.Header.Set("X-Forwarded-Proto", "https")
				seen = "https"
			}
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close()
			} else if c.path != "/abort" {
				t.Fatalf("%s %s: %v", c.method, c.path, err)
			}
			want[c.ends+" "+seen]++
		}
	}
	var got map[string]uint64
	defer func() {
		if t.Failed() {
			t.Logf("counted %v, want %v", got, want)
		}
	}()
	Soon(t, "all are counted", func() bool { got = endings(app); return maps.Equal(got, want) })
}
