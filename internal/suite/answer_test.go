package suite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// markStatus is middleware that leaves its name and the status it sees in the headers.
func markStatus(name string) dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			return resp.Header("X-"+name, fmt.Sprint(resp.StatusCode()))
		}
	}
}

func TestPanicIsRecoveredInsideMiddleware(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Recover(func(r *dunlin.Request, v any) dunlin.Response {
				return dunlin.Text(fmt.Sprint("caught ", v)).Status(500)
			})
			app.Use(markStatus("Outer"))
			inner := app.Group("", markStatus("Inner"))
			inner.Get("/action", func(*dunlin.Request) dunlin.Response { panic("it") })
			inner.Get("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
			app.Get("/middleware", Text("never"), func(dunlin.Action) dunlin.Action {
				return func(*dunlin.Request) dunlin.Response { panic("it") }
			})
		})
		for path, inner := range map[string]string{"/action": "500", "/middleware": ""} {
			resp, got := askStd(t, "GET", "http://"+addr+path, "")
			if resp.StatusCode != 500 || got != "caught it" || resp.Header.Get("X-Outer") != "500" || resp.Header.Get("X-Inner") != inner {
				t.Errorf("%s: got %d %q %v", path, resp.StatusCode, got, resp.Header)
			}
		}
		if resp, err := http.Get("http://" + addr + "/abort"); err == nil {
			t.Errorf("abort: answered %d", resp.StatusCode)
		}
		Soon(t, "both panics are logged", func() bool { return strings.Count(logs.String(), "panic in an action") >= 2 })
		if n := strings.Count(logs.String(), "panic in an action"); n != 2 {
			t.Errorf("%d panics logged, want 2:\n%s", n, logs)
		}
	})
}

// Middleware sees the 500 that replaces a zero Response of an action or of inner middleware.
func TestZeroResponseInsideMiddleware(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Use(markStatus("Outer"))
			inner := app.Group("", markStatus("Inner"))
			inner.Get("/action", Constant(dunlin.Response{}))
			inner.Get("/header", func(*dunlin.Request) dunlin.Response { return dunlin.Response{}.Header("X-Lost", "1") })
			app.Get("/middleware", Text("never"), func(dunlin.Action) dunlin.Action { return Constant(dunlin.Response{}) })
		})
		for path, inner := range map[string]string{"/action": "500", "/header": "500", "/middleware": ""} {
			resp, got := askStd(t, "GET", "http://"+addr+path, "")
			if resp.StatusCode != 500 || !strings.Contains(got, `"status":500`) || resp.Header.Get("X-Outer") != "500" || resp.Header.Get("X-Inner") != inner || resp.Header.Get("X-Lost") != "" {
				t.Errorf("%s: got %d %q %v", path, resp.StatusCode, got, resp.Header)
			}
		}
		Soon(t, "all three are logged", func() bool { return strings.Count(logs.String(), "zero Response") == 3 })
	})
}

// A stream that begins after the limit is late, also on a route whose streams are known to block.
func TestTimeoutOfLateStream(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			app.Get("/late", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					<-r.Context().Done()
					<-time.After(5 * time.Millisecond)
					_, err := io.WriteString(w, strings.Repeat("late", 10_000))
					return err
				})
			}).Timeout(10 * time.Millisecond)
			app.Get("/probe", Text("probe"))
		})
		for i := range 40 {
			if resp, body := sendTo(t, "GET", "http://"+addr+"/late", ""); resp.StatusCode != 503 || body != problemLate {
				t.Fatalf("request %d: got %d %.60q", i, resp.StatusCode, body)
			}
		}
		if resp, _ := sendTo(t, "GET", "http://"+addr+"/probe", ""); resp.StatusCode != 200 {
			t.Errorf("afterwards: got %d", resp.StatusCode)
		}
	})
}

// The deadline is cleared once the response has begun, so that work that uses the context can continue.
func TestTimeoutClearsDeadline(t *testing.T) {
	outlive := func(ctx context.Context, limit time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(3 * limit): // the context would have ended by then
		}
		if until, ok := ctx.Deadline(); ok {
			return fmt.Errorf("the deadline is still %v", until)
		}
		return ctx.Err()
	}
	pass := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		Unhurried(t, 30*time.Millisecond, func(limit time.Duration) error { // the response begins within it
			std := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "begun ")
				_ = http.NewResponseController(w).Flush()
				child, cancel := context.WithCancel(r.Context())
				defer cancel()
				_, _ = fmt.Fprint(w, outlive(child, limit))
			})
			addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Action: limit}, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
				register := func(g *dunlin.Group) {
					g.Get("/stream", func(r *dunlin.Request) dunlin.Response {
						return dunlin.Stream("text/plain", func(w io.Writer) error {
							if _, err := io.WriteString(w, "begun "); err != nil {
								return err
							}
							if err := dunlin.Flush(w); err != nil {
								return err
							}
							_, err := fmt.Fprint(w, outlive(r.Context(), limit))
							return err
						})
					})
					g.Get("/sse", func(*dunlin.Request) dunlin.Response {
						return dunlin.SSE(func(e *dunlin.Events) error {
							if err := e.Send(dunlin.Event{Data: "begun"}); err != nil {
								return err
							}
							return e.Send(dunlin.Event{Data: fmt.Sprint(outlive(e.Context(), limit))})
						})
					})
					g.Get("/handler", dunlin.FromStd(std))
					g.Get("/hijack", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						conn, _, err := http.NewResponseController(w).Hijack()
						if err != nil {
							return // the action is late, and the client got a 503
						}
						defer conn.Close()
						err = outlive(r.Context(), limit)
						_, _ = fmt.Fprintf(conn, "HTTP/1.0 200 OK\r\n\r\nbegun %v", err)
					})))
				}
				register(app.Group("/plain"))
				behind := app.Group("/behind")
				behind.UseStd(pass)
				register(behind)
			})
			for _, group := range []string{"/plain", "/behind"} {
				for path, want := range map[string]string{
					"/stream": "begun <nil>", "/handler": "begun <nil>", "/hijack": "begun <nil>", "/sse": "data: begun\n\ndata: <nil>\n\n",
				} {
					resp, got := askStd(t, "GET", "http://"+addr+group+path, "")
					if resp.StatusCode == 503 {
						return Late(group + path + ": " + got)
					}
					if resp.StatusCode != 200 || got != want {
						return fmt.Errorf("%s%s: %d %q, want %q", group, path, resp.StatusCode, got, want)
					}
				}
			}
			return nil
		})
	})
}

// The deadline does not move while time passes, and derived contexts end with it.
func TestTimeoutDeadline(t *testing.T) {
	const limit = 200 * time.Millisecond
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		type seen struct {
			left  time.Duration
			err   error
			cause error
		}
		got := make(chan seen, 1)
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				<-time.After(limit / 2) // the loop's clock is stale by then
				until, _ := r.Context().Deadline()
				s := seen{left: time.Until(until)}
				child, cancel := context.WithCancel(r.Context())
				defer cancel()
				<-child.Done()
				s.err, s.cause = child.Err(), context.Cause(child)
				got <- s
				return dunlin.Error(child.Err())
			}).Timeout(limit)
		})
		if resp, body := sendTo(t, "GET", "http://"+addr+"/", ""); resp.StatusCode != 503 || body != problemLate {
			t.Errorf("answered %d %s", resp.StatusCode, body)
		}
		s := Await(t, "the late action", got)
		if s.left > limit/2 || s.err != context.DeadlineExceeded || s.cause != context.DeadlineExceeded {
			t.Errorf("%v left, %v, %v; want %v at most", s.left, s.err, s.cause, limit/2)
		}
	})
}

// A disconnected client is not logged as a failure.
func TestClientGone(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		entered := make(chan struct{}, 10)
		logs := new(LogBuffer)
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: logs.Logger(slog.LevelDebug)}, func(a *dunlin.App) {
			app = a
			wait := func(r *dunlin.Request) dunlin.Response {
				entered <- struct{}{}
				<-r.Context().Done()
				return dunlin.Error(fmt.Errorf("loading: %w", r.Context().Err()))
			}
			a.Get("/plain", wait)
			behind := a.Group("")
			behind.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
			})
			behind.Get("/behind", wait)
			own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				entered <- struct{}{}
				<-r.Context().Done()
				http.Error(w, "loading: "+r.Context().Err().Error(), http.StatusInternalServerError)
			})
			a.Get("/std", dunlin.FromStd(own))
			behind.Get("/behind/std", dunlin.FromStd(own))
			a.Get("/around/std", dunlin.FromStd(own), func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response { return next(r) }
			})
		})
		for i, path := range []string{"/plain", "/behind", "/std", "/behind/std", "/around/std"} {
			conn := AskConn(t, addr, Request("GET "+path))
			Await(t, "the action", entered)
			_ = conn.Close()
			Soon(t, path+" is counted as dropped", func() bool {
				s := app.Stats().Routes[i].Status
				if s.ServerError > 0 {
					t.Fatalf("%s: got %+v", path, s)
				}
				return s.Dropped == 1
			})
		}
		Soon(t, "each is logged", func() bool { return strings.Count(logs.String(), "client disconnected before the response") == 5 })
		WantLacks(t, "the log", logs.String(), "level=ERROR")
	})
}

func TestVersionedRoutesSetVary(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/plain", Text("plain"))
			app.Get("/both", Text("old"))
			app.Version("v2").Get("/both", Text("new"))
			app.Version("v2").Get("/panic", func(*dunlin.Request) dunlin.Response { panic("it") })
			app.Version("v2").Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Vary", "Accept-Encoding, accept")
				_, _ = io.WriteString(w, strings.Repeat("long ", 20_000))
			})))
			app.Version("v2").Get("/own", Constant(dunlin.Text("own").With(dunlin.NewHeaderBlock("Vary", "Origin"))))
		})
		for _, c := range []struct{ path, accept, vary string }{
			{"/plain", "", ""}, {"/both", "", "Accept"}, {"/both", "application/vnd.x.v2+json", "Accept"},
			{"/both", "application/vnd.x.v3+json", "Accept"}, {"/panic", "", "Accept"}, {"/own", "", "Origin, Accept"}, {"/std", "", "Accept-Encoding, accept"},
		} {
			resp, _ := askStd(t, "GET", "http://"+addr+c.path, "", "Accept", c.accept)
			if got := strings.Join(resp.Header["Vary"], ", "); got != c.vary {
				t.Errorf("%s for %q: Vary: got %s, want %s", c.path, c.accept, got, c.vary)
			}
		}
	})
}

// Handlers and the middleware around them see the matched pattern.
func TestStdPattern(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		show := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprint(w, r.Pattern, " ", r.PathValue("id"), " ", r.PathValue("rest"), " ", r.PathValue("none"), " ", string(b))
		})
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Post("/users/{id:int}/{rest...}", dunlin.FromStd(show))
			app.Mount("/mounted/{id}", show)
			behind := app.Group("/behind")
			behind.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Pattern", r.Pattern+" "+r.PathValue("id"))
					next.ServeHTTP(w, r)
				})
			})
			behind.Post("/{id}", dunlin.FromStd(show))
		})
		for path, want := range map[string]string{
			"/users/7/a%20b/c": "/users/{id:int}/{rest...} 7 a b/c  body",
			"/mounted/x/y":     "/mounted/{id} x   body",
			"/behind/z":        "/behind/{id} z   body",
		} {
			resp, got := askStd(t, "POST", "http://"+addr+path, "body")
			if got != want {
				t.Errorf("%s: got %q, want %q", path, got, want)
			}
			if strings.HasPrefix(path, "/behind") && resp.Header.Get("X-Pattern") != "/behind/{id} z" {
				t.Errorf("middleware saw %q", resp.Header.Get("X-Pattern"))
			}
		}
	})
}

func TestForeignPatternSyntaxIsRejected(t *testing.T) {
	app, _ := NewApp(dunlin.Config{})
	for pattern, hint := range map[string]string{
		"/users/:id":      "a parameter is written {id}, not :id",
		"/users/:id/edit": "{id}",
		"/:":              "{name}",
		"/a/:id([0-9]+)":  "{name}",
		"/files/*":        "the rest of a path is written {rest...}, not *",
		"/files/*path":    "{path...}",
	} {
		WantContains(t, pattern, PanicText(func() { app.Get(pattern, Text("")) }), hint)
	}
	app.Get("/a:b/c*/%3Ameant/%2A", Text("literal"))
	if w := Do(app, "GET", "/a:b/c*/:meant/*"); w.Code != 200 {
		t.Errorf("got %d", w.Code)
	}
}

// Race builds detect the use of a Request after its action has returned.
func TestRequestUseAfterReturnIsDetected(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("only builds with the race detector see it")
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		kept, bodies := make(chan *dunlin.Request, 100), make(chan io.Reader, 100)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/{id}", func(r *dunlin.Request) dunlin.Response {
				kept <- r
				bodies <- r.Body()
				return dunlin.Text(r.Param("id"))
			})
			app.Get("/stream", func(r *dunlin.Request) dunlin.Response {
				kept <- r
				bodies <- r.Body()
				return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, r.Path()); return err })
			})
		})
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		Send(t, conn, Request("GET /1")+Request("GET /2")) // pipelined
		Answered(t, br, 200, "1")
		Answered(t, br, 200, "2")
		Send(t, conn, Request("GET /stream"))
		Answered(t, br, 200, "/stream")
		for range 3 {
			Send(t, conn, Request("GET /next")) // the previous request has ended
			Answered(t, br, 200, "next")
			r, body := Await(t, "a request", kept), Await(t, "its body", bodies)
			for what, use := range map[string]func(){
				"Param": func() { r.Param("id") }, "Path": func() { r.Path() }, "Header": func() { r.Header("X") },
				"Query": func() { r.Query("x") }, "ID": func() { r.ID() }, "Context": func() { r.Context() }, "Int": func() { _, _ = dunlin.Param[int](r, "id") },
				"ContentLength": func() { r.ContentLength() }, "Cookie": func() { r.Cookie("c") }, "OnAnswer": func() { r.OnAnswer(func(*dunlin.AnswerInfo) {}) },
				"Read": func() { _, _ = body.Read(make([]byte, 1)) },
			} {
				if text := PanicText(use); !strings.Contains(text, "after its action has returned") {
					t.Errorf("%s: panics with %q", what, text)
				}
			}
		}
	})
}
