package dunlin_test

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

// askFor sends GET for path with a token over a new connection, which it returns.
func askFor(t *testing.T, addr, path, token string) *bufio.Reader {
	t.Helper()
	return bufio.NewReader(askConn(t, addr, req("GET "+path, "X-Token: "+token)))
}

// refusedBy reads an answer that must have the status, Retry-After and the detail.
func refusedBy(t *testing.T, br *bufio.Reader, status, detail string) {
	t.Helper()
	answer, err := readAnswer(br, "GET")
	if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 "+status) || !strings.Contains(answer, "Retry-After: 1\n") || !strings.Contains(answer, detail) {
		t.Fatalf("answered with %v\n%s\nwant %s and %q", err, answer, status, detail)
	}
}

func token(r *dunlin.Request) string { return r.Header("X-Token") }

// letPass lets the actions pass that are at the gate, in whatever order they go, and
// reads their answers.
func (g *gate) letPass(t *testing.T, answers ...*bufio.Reader) {
	t.Helper()
	for range answers {
		g.open <- struct{}{}
	}
	for _, br := range answers {
		answered(t, br, 200, "ok")
	}
}

func TestLimits(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		logs := new(logBuffer)
		var app *dunlin.App
		g := newGate()
		held := func(*dunlin.Request) dunlin.Response { g.pass(); return dunlin.Text("ok") }
		config := dunlin.Config{Engine: engine, Logger: logs.logger(slog.LevelWarn)}
		addr, _ := start(t, config, func(a *dunlin.App) {
			app = a
			a.Get("/route", held).Limit(2)
			a.Get("/key", held).LimitBy(token, 1)
			a.Get("/address", held).LimitBy(nil, 1)
			group := a.Group("/group").Limit(1)
			group.Get("/one", held)
			group.Get("/two", held)
			a.Get("/free", text("free"))
		})
		for _, c := range []struct {
			name, path, token string // of those that are served
			others            []string
			status, detail    string
		}{
			{"a route", "/route,/route", "", []string{"/route"}, "503", "are being served here already: the limit is 2"},
			{"a group", "/group/one", "", []string{"/group/one", "/group/two"}, "503", "are being served here already: the limit is 1"},
			{"a key", "/key", "one", []string{"/key"}, "429", "for this client already: the limit is 1"},
			{"an address", "/address", "", []string{"/address"}, "429", "for this client already: the limit is 1"},
		} {
			var served []*bufio.Reader
			for path := range strings.SplitSeq(c.path, ",") {
				served = append(served, askFor(t, addr, path, c.token))
				g.await(t)
			}
			for _, path := range c.others {
				refusedBy(t, askFor(t, addr, path, c.token), c.status, c.detail)
			}
			answered(t, askFor(t, addr, "/free", c.token), 200, "free")
			g.letPass(t, served...)
			again := askFor(t, addr, c.others[0], c.token)
			g.await(t)
			g.letPass(t, again)
		}
		one, none := askFor(t, addr, "/key", "one"), askFor(t, addr, "/key", "")
		g.await(t)
		g.await(t)
		other := askFor(t, addr, "/key", "other")
		g.await(t)
		g.letPass(t, one, none, other)
		if s := app.Stats().Shed; s["route-limit"] != 3 || s["key-limit"] != 2 {
			t.Errorf("counted: %v", s)
		}
		soon(t, "the log has both", func() bool { return strings.Count(logs.String(), "refused by a limit") >= 2 })
		if n := strings.Count(logs.String(), "refused by a limit"); n != 2 {
			t.Errorf("logged %d times:\n%s", n, logs)
		}
	})
}

// TestLimitIsGivenBack takes the only place under two limits in every way in which a request can
// end, and then once more.
func TestLimitIsGivenBack(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		stale := dunlin.JSON("once")
		ends := map[string]dunlin.Action{
			"return":  text("ok"),
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
		config := dunlin.Config{Engine: engine, Logger: new(logBuffer).logger(slog.LevelError)}
		addr, _ := start(t, config, func(a *dunlin.App) {
			for name, act := range ends {
				a.Get("/"+strings.ReplaceAll(name, " ", "-"), act).LimitBy(token, 1).Limit(1)
			}
		})
		for name := range ends {
			path := "/" + strings.ReplaceAll(name, " ", "-")
			for range 3 {
				answer, err := readAnswer(askFor(t, addr, path, "t"), "GET")
				if err == nil && (strings.HasPrefix(answer, "HTTP/1.1 503") || strings.HasPrefix(answer, "HTTP/1.1 429")) {
					t.Errorf("%s: the place is still taken:\n%s", name, answer)
				}
			}
		}
	})
}

func TestLimitHoldsUntilTheStreamEnds(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		g := newGate()
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			a.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					if _, err := io.WriteString(w, "begun"); err != nil {
						return err
					}
					if err := dunlin.Flush(w); err != nil {
						return err
					}
					g.pass()
					return nil
				})
			}).Limit(1)
		})
		stream := askFor(t, addr, "/stream", "")
		g.await(t)
		refusedBy(t, askFor(t, addr, "/stream", ""), "503", "1")
		g.open <- struct{}{}
		if _, err := readAnswer(stream, "GET"); err != nil {
			t.Fatal(err)
		}
		g.open <- struct{}{}
		soon(t, "the place is free", func() bool {
			answer, err := readAnswer(askFor(t, addr, "/stream", ""), "GET")
			return err == nil && strings.HasPrefix(answer, "HTTP/1.1 200")
		})
	})
}

// TestLimitHoldsWhileAnActionIsLate: its client has been answered, but it still runs.
func TestLimitHoldsWhileAnActionIsLate(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		g := newGate()
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			a.Get("/late", func(*dunlin.Request) dunlin.Response { g.pass(); return dunlin.Text("ok") }).Timeout(time.Millisecond).Limit(1)
		})
		late := askFor(t, addr, "/late", "")
		g.await(t)
		if answer, err := readAnswer(late, "GET"); err != nil || !strings.Contains(answer, "took too long") {
			t.Fatalf("%v\n%s", err, answer)
		}
		soon(t, "another is refused", func() bool { // unless its own millisecond is over before that
			answer, err := readAnswer(askFor(t, addr, "/late", ""), "GET")
			if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 503") {
				t.Fatalf("%v\n%s", err, answer)
			}
			return strings.Contains(answer, "are being served here already: the limit is 1")
		})
		g.open <- struct{}{}
		soon(t, "the place is free", func() bool {
			g.open <- struct{}{} // for this one, if it gets there
			answer, err := readAnswer(askFor(t, addr, "/late", ""), "GET")
			return err == nil && !strings.Contains(answer, "are being served here")
		})
	})
}

// A stream that comes too late gives its place back like any other answer.
func TestLateStreamGivesItsPlaceBack(t *testing.T) {
	streams := map[string]func() dunlin.Response{
		"events": func() dunlin.Response { return dunlin.SSE(func(*dunlin.Events) error { return nil }) },
		"stream": func() dunlin.Response {
			return dunlin.Stream("text/plain", func(io.Writer) error { return nil })
		},
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
				g := newGate()
				addr, _ := start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
					a.Get("/late", func(r *dunlin.Request) dunlin.Response {
						if token(r) != "late" {
							return dunlin.Text("free")
						}
						g.pass()
						return stream()
					}).Timeout(time.Millisecond).Limit(1)
				})
				late := askFor(t, addr, "/late", "late")
				g.await(t)
				if answer, err := readAnswer(late, "GET"); err != nil || !strings.Contains(answer, "took too long") {
					t.Fatalf("%v\n%s", err, answer)
				}
				g.open <- struct{}{}
				conn := dial(t, addr)
				br := bufio.NewReader(conn)
				soon(t, "the place is free", func() bool {
					send(t, conn, req("GET /late"))
					answer, err := readAnswer(br, "GET")
					return err == nil && strings.HasSuffix(answer, "free")
				})
			})
		})
	}
}

func TestLimitCostsNoAllocation(t *testing.T) {
	if invariants.Enabled {
		t.Skip("pools drop at random in builds with the race detector")
	}
	app, _ := newApp(dunlin.Config{})
	app.Get("/free", text("ok"))
	app.Get("/limited", text("ok")).Limit(10).LimitBy(token, 10)
	count := func(path string) float64 {
		return testing.AllocsPerRun(100, func() { do(app, "GET", path, "X-Token", "t") })
	}
	if free, limited := count("/free"), count("/limited"); limited > free {
		t.Errorf("%v allocations for a limited route, %v for one that is not", limited, free)
	}
}

func TestLimitPanics(t *testing.T) {
	for name, register := range map[string]func(*dunlin.App){
		"Limit(0)":    func(a *dunlin.App) { a.Get("/", text("")).Limit(0) },
		"LimitBy(-1)": func(a *dunlin.App) { a.Get("/", text("")).LimitBy(nil, -1) },
	} {
		app, _ := newApp(dunlin.Config{})
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
