package suite

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// askFor sends GET for path with a token over a new connection and returns its reader.
func askFor(t *testing.T, addr, path, token string) *bufio.Reader {
	t.Helper()
	return bufio.NewReader(AskConn(t, addr, Request("GET "+path, "X-Token: "+token)))
}

// refusedBy reads a response and checks the status, Retry-After and the detail.
func refusedBy(t *testing.T, br *bufio.Reader, status, detail string) {
	t.Helper()
	answer, err := ReadAnswer(br, "GET")
	if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 "+status) || !strings.Contains(answer, "Retry-After: 1\n") || !strings.Contains(answer, detail) {
		t.Fatalf("answered with %v\n%s\nwant %s and %q", err, answer, status, detail)
	}
}

func token(r *dunlin.Request) string { return r.Header("X-Token") }

// letPass releases the actions at the gate, in any order, and reads their responses.
func (g *Gate) letPass(t *testing.T, answers ...*bufio.Reader) {
	t.Helper()
	for range answers {
		g.Open <- struct{}{}
	}
	for _, br := range answers {
		Answered(t, br, 200, "ok")
	}
}

func TestLimits(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		logs := new(LogBuffer)
		var app *dunlin.App
		g := NewGate()
		held := func(*dunlin.Request) dunlin.Response { g.Pass(); return dunlin.Text("ok") }
		config := dunlin.Config{Engine: engine, Logger: logs.Logger(slog.LevelWarn)}
		addr, _ := Start(t, config, func(a *dunlin.App) {
			app = a
			a.Get("/route", held).Limit(2)
			a.Get("/key", held).LimitBy(token, 1)
			a.Get("/address", held).LimitBy(nil, 1)
			group := a.Group("/group").WithLimit(1)
			group.Get("/one", held)
			group.Get("/two", held)
			a.Get("/free", Text("free"))
		})
		for _, c := range []struct {
			name, path, token string // names, paths and tokens of requests that are served
			others            []string
			status, detail    string
		}{
			{"a route", "/route,/route", "", []string{"/route"}, "503", "requests for this resource: the limit is 2"},
			{"a group", "/group/one", "", []string{"/group/one", "/group/two"}, "503", "requests for this resource: the limit is 1"},
			{"a key", "/key", "one", []string{"/key"}, "429", "from this client: the limit is 1"},
			{"a request without a key", "/key", "", []string{"/key"}, "429", "from this client: the limit is 1"},
			{"an address", "/address", "", []string{"/address"}, "429", "from this client: the limit is 1"},
		} {
			var served []*bufio.Reader
			for path := range strings.SplitSeq(c.path, ",") {
				served = append(served, askFor(t, addr, path, c.token))
				g.Await(t)
			}
			for _, path := range c.others {
				refusedBy(t, askFor(t, addr, path, c.token), c.status, c.detail)
			}
			Answered(t, askFor(t, addr, "/free", c.token), 200, "free")
			g.letPass(t, served...)
			again := askFor(t, addr, c.others[0], c.token)
			g.Await(t)
			g.letPass(t, again)
		}
		one, none := askFor(t, addr, "/key", "one"), askFor(t, addr, "/key", "")
		g.Await(t)
		g.Await(t)
		other := askFor(t, addr, "/key", "other")
		g.Await(t)
		g.letPass(t, one, none, other)
		if s := app.Stats().Shed; s["route-limit"] != 3 || s["key-limit"] != 3 {
			t.Errorf("counted: got %v", s)
		}
		Soon(t, "the log has both", func() bool { return strings.Count(logs.String(), "refused by a limit") >= 2 })
		if n := strings.Count(logs.String(), "refused by a limit"); n != 2 {
			t.Errorf("logged %d times:\n%s", n, logs)
		}
	})
}

// TestLimitIsReleased uses the only place under two limits, ends the request in each possible way, and uses the place again.
func TestLimitIsReleased(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		stale := dunlin.JSON("once")
		ends := map[string]dunlin.Action{
			"return":  Text("ok"),
			"json":    func(*dunlin.Request) dunlin.Response { return dunlin.JSON(1) },
			"nothing": func(*dunlin.Request) dunlin.Response { return dunlin.Response{} },
			"stale":   func(*dunlin.Request) dunlin.Response { return stale },
			"panic":   func(*dunlin.Request) dunlin.Response { panic("on purpose") },
			"abort":   func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) },
			"goexit":  func(*dunlin.Request) dunlin.Response { runtime.Goexit(); panic("unreachable") },
			"stream": func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, "ok"); return err })
			},
			"stream that panics": func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(io.Writer) error { panic("on purpose") })
			},
			"handler": dunlin.FromStd(http.NotFoundHandler()),
		}
		config := dunlin.Config{Engine: engine, Logger: new(LogBuffer).Logger(slog.LevelError)}
		addr, _ := Start(t, config, func(a *dunlin.App) {
			for name, act := range ends {
				a.Get("/"+strings.ReplaceAll(name, " ", "-"), act).LimitBy(token, 1).Limit(1)
			}
		})
		for name := range ends {
			path := "/" + strings.ReplaceAll(name, " ", "-")
			for range 3 {
				answer, err := ReadAnswer(askFor(t, addr, path, "t"), "GET")
				if err == nil && (strings.HasPrefix(answer, "HTTP/1.1 503") || strings.HasPrefix(answer, "HTTP/1.1 429")) {
					t.Errorf("%s: the place is still taken:\n%s", name, answer)
				}
			}
		}
	})
}

func TestLimitIsHeldUntilStreamEnds(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		g := NewGate()
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			a.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					if _, err := io.WriteString(w, "begun"); err != nil {
						return err
					}
					if err := dunlin.Flush(w); err != nil {
						return err
					}
					g.Pass()
					return nil
				})
			}).Limit(1)
		})
		stream := askFor(t, addr, "/stream", "")
		g.Await(t)
		refusedBy(t, askFor(t, addr, "/stream", ""), "503", "1")
		g.Open <- struct{}{}
		if _, err := ReadAnswer(stream, "GET"); err != nil {
			t.Fatal(err)
		}
		g.Open <- struct{}{}
		Soon(t, "the place is free", func() bool {
			answer, err := ReadAnswer(askFor(t, addr, "/stream", ""), "GET")
			return err == nil && strings.HasPrefix(answer, "HTTP/1.1 200")
		})
	})
}

// TestLimitIsHeldByLateAction checks that an action holds its place after its client got a 503.
func TestLimitIsHeldByLateAction(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		g := NewGate()
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			a.Get("/late", func(*dunlin.Request) dunlin.Response { g.Pass(); return dunlin.Text("ok") }).Timeout(time.Millisecond).Limit(1)
		})
		late := askFor(t, addr, "/late", "")
		g.Await(t)
		if answer, err := ReadAnswer(late, "GET"); err != nil || !strings.Contains(answer, "took too long") {
			t.Fatalf("%v\n%s", err, answer)
		}
		Soon(t, "another is refused", func() bool { // unless its own millisecond is over before
			answer, err := ReadAnswer(askFor(t, addr, "/late", ""), "GET")
			if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 503") {
				t.Fatalf("%v\n%s", err, answer)
			}
			return strings.Contains(answer, "requests for this resource: the limit is 1")
		})
		g.Open <- struct{}{}
		Soon(t, "the place is free", func() bool {
			g.Open <- struct{}{} // for this request, if it is admitted
			answer, err := ReadAnswer(askFor(t, addr, "/late", ""), "GET")
			return err == nil && !strings.Contains(answer, "for this resource")
		})
	})
}

// A stream that begins after the timeout releases its place like any other response.
func TestLateStreamReleasesLimit(t *testing.T) {
	streams := map[string]func() dunlin.Response{
		"events": func() dunlin.Response { return dunlin.SSE(func(*dunlin.Events) error { return nil }) },
		"stream": func() dunlin.Response {
			return dunlin.Stream("text/plain", func(io.Writer) error { return nil })
		},
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
				g := NewGate()
				addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
					a.Get("/late", func(r *dunlin.Request) dunlin.Response {
						if token(r) != "late" {
							return dunlin.Text("free")
						}
						g.Pass()
						return stream()
					}).Timeout(time.Millisecond).Limit(1)
				})
				late := askFor(t, addr, "/late", "late")
				g.Await(t)
				if answer, err := ReadAnswer(late, "GET"); err != nil || !strings.Contains(answer, "took too long") {
					t.Fatalf("%v\n%s", err, answer)
				}
				g.Open <- struct{}{}
				Soon(t, "the place is free", func() bool { // on a new connection each time: a late response closes its connection
					answer, err := ReadAnswer(askFor(t, addr, "/late", ""), "GET")
					return err == nil && strings.HasSuffix(answer, "free")
				})
			})
		})
	}
}

func TestLimitAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("pools drop at random in builds with the race detector")
	}
	app, _ := NewApp(dunlin.Config{})
	app.Get("/free", Text("ok"))
	app.Get("/limited", Text("ok")).Limit(10).LimitBy(token, 10)
	count := func(path string) float64 {
		return testing.AllocsPerRun(100, func() { Do(app, "GET", path, "X-Token", "t") })
	}
	if free, limited := count("/free"), count("/limited"); limited > free {
		t.Errorf("%v allocations for a limited route, %v for one that is not", limited, free)
	}
}

func TestLimitPanics(t *testing.T) {
	for name, register := range map[string]func(*dunlin.App){
		"Limit(0)":    func(a *dunlin.App) { a.Get("/", Text("")).Limit(0) },
		"LimitBy(-1)": func(a *dunlin.App) { a.Get("/", Text("")).LimitBy(nil, -1) },
	} {
		app, _ := NewApp(dunlin.Config{})
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, name) || !strings.Contains(v, "limit_test.go") {
					t.Errorf("%s panics with %q", name, v)
				}
			}()
			register(app)
		}()
	}
}
