package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Headers that middleware adds reach the client, regardless of the length of a standard handler's response and the moment
// when it begins.
func TestHeadersAroundStandardHandlers(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Use(markStatus("Outer"), func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					return next(r).Cookie(&http.Cookie{Name: "c", Value: "1"}).Header("X-Replaced", "by middleware")
				}
			})
			write := func(f func(w http.ResponseWriter, r *http.Request)) dunlin.Action {
				return dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Replaced", "by the handler")
					w.Header().Set("X-Handler", "1")
					f(w, r)
				}))
			}
			app.Get("/short", write(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "short") }))
			app.Get("/long", write(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) }))
			app.Get("/length", write(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(long)))
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, long)
			}))
			app.Get("/flushed", write(func(w http.ResponseWriter, _ *http.Request) {
				for _, part := range []string{"flu", "sh", "ed"} {
					_, _ = io.WriteString(w, part)
					_ = http.NewResponseController(w).Flush()
				}
			}))
			app.Post("/echo", write(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
			app.Get("/trailer", write(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "X-After")
				_, _ = io.WriteString(w, "trailed")
				w.Header().Set("X-After", "1")
			}))
			behind := app.Group("/behind")
			behind.UseStd(passOn)
			behind.Get("/long", Text(long))
			behind.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, long); return err })
			})
			behind.Get("/handler", write(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) }))
		})
		for _, c := range []struct {
			method, path, body, want string
			status                   int
		}{
			{"GET", "/short", "", "short", 200}, {"GET", "/long", "", long, 200}, {"GET", "/length", "", long, 202},
			{"HEAD", "/long", "", "", 200}, {"HEAD", "/flushed", "", "", 200},
			{"GET", "/flushed", "", "flushed", 200}, {"POST", "/echo", long, long, 200}, {"GET", "/trailer", "", "trailed", 200},
			{"GET", "/behind/long", "", long, 200}, {"GET", "/behind/stream", "", long, 200}, {"GET", "/behind/handler", "", long, 200},
		} {
			resp, got := askStd(t, c.method, "http://"+addr+c.path, c.body)
			if got != c.want || resp.StatusCode != c.status {
				t.Errorf("%s %s: got %d, %d bytes, want %d and %d", c.method, c.path, resp.StatusCode, len(got), c.status, len(c.want))
			}
			h := resp.Header
			if h.Get("X-Outer") != fmt.Sprint(c.status) || h.Get("Set-Cookie") != "c=1" || strings.Join(h["X-Replaced"], ", ") != "by middleware" {
				t.Errorf("%s %s: got headers %v", c.method, c.path, h)
			}
			if c.path == "/trailer" && resp.Trailer.Get("X-After") != "1" {
				t.Errorf("trailers: got %v", resp.Trailer)
			}
			if c.path == "/length" && resp.ContentLength != int64(len(long)) {
				t.Errorf("got length %d", resp.ContentLength)
			}
		}
	})
}

// Middleware may replace the response of a handler that has begun to write: the handler's context ends, its writes fail, and
// its output is discarded.
func TestReplacedHandlerStream(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		ended := make(chan error, 4)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					next(r)
					return dunlin.Text("instead")
				}
			})
			app.Get("/events", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				_, err := io.WriteString(w, "late")
				ended <- err
			})))
			g := app.Group("")
			g.UseStd(passOn)
			g.Get("/native", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					err := dunlin.Flush(w)
					for i := 0; i < 1000 && err == nil; i++ {
						_, err = io.WriteString(w, strings.Repeat("late", 10_000))
					}
					ended <- err
					return err
				})
			})
		})
		for _, path := range []string{"/events", "/native"} {
			if resp, got := askStd(t, "GET", "http://"+addr+path, ""); resp.StatusCode != 200 || got != "instead" {
				t.Errorf("%s: got %d %.40q", path, resp.StatusCode, got)
			}
			if err := Await(t, "the handler", ended); err == nil {
				t.Errorf("%s: got no error from a write of the handler", path)
			}
		}
	})
}

// Panics before and after the head, aborts, timeouts and hijacking work for handlers inside middleware, too.
func TestFailingHandlersInsideMiddleware(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Use(markStatus("Outer"))
			register := func(prefix string, f http.HandlerFunc) *dunlin.Route { return app.Get(prefix, dunlin.FromStd(f)) }
			register("/panic", func(http.ResponseWriter, *http.Request) { panic("before") })
			register("/cut", func(w http.ResponseWriter, _ *http.Request) {
				_ = http.NewResponseController(w).Flush()
				panic("after")
			})
			register("/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			register("/late", func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				<-time.After(5 * time.Millisecond)
				_, _ = io.WriteString(w, strings.Repeat("late", 20_000))
			}).Timeout(10 * time.Millisecond)
			register("/hijack", func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\nhijacked")
				_ = conn.Close()
			})
		})
		if resp, _ := askStd(t, "GET", "http://"+addr+"/panic", ""); resp.StatusCode != 500 || resp.Header.Get("X-Outer") != "500" {
			t.Errorf("panic: got %d %v", resp.StatusCode, resp.Header)
		}
		for range 3 {
			if resp, _ := askStd(t, "GET", "http://"+addr+"/late", ""); resp.StatusCode != 503 {
				t.Errorf("late: got %d", resp.StatusCode)
			}
		}
		if _, got := askStd(t, "GET", "http://"+addr+"/hijack", ""); got != "hijacked" {
			t.Errorf("hijack: got %q", got)
		}
		for _, path := range []string{"/cut", "/abort"} {
			resp, err := http.ReadResponse(bufio.NewReader(AskConn(t, addr, Request("GET "+path))), nil)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
			}
			if err == nil {
				t.Errorf("%s: got a complete answer with status %d", path, resp.StatusCode)
			}
		}
		WantLogged(t, logs, "before", "panic after part of the answer was sent")
	})
}

// The cause of a failure passes through standard middleware and is logged once.
func TestErrorInsideUseStd(t *testing.T) {
	cause := errors.New("the cause")
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		seen := make(chan error, 1)
		logs := new(LogBuffer)
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: logs.Logger(slog.LevelDebug)}, func(app *dunlin.App) {
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					resp := next(r)
					seen <- resp.Err()
					return resp
				}
			})
			app.UseStd(passOn)
			app.Get("/{status:int}", func(r *dunlin.Request) dunlin.Response {
				status, _ := dunlin.Param[int](r, "status")
				return dunlin.Error(&dunlin.ProblemDetails{Status: status, Cause: cause})
			})
		})
		for _, status := range []int{404, 409, 500} {
			resp, _ := askStd(t, "GET", fmt.Sprintf("http://%s/%d", addr, status), "")
			if err := Await(t, "the cause", seen); resp.StatusCode != status || !errors.Is(err, cause) {
				t.Errorf("%d, got error %v in middleware; want %d and the cause", resp.StatusCode, err, status)
			}
		}
		Soon(t, "the failures are logged", func() bool { return strings.Count(logs.String(), "request failed") >= 3 })
		if n := strings.Count(logs.String(), "request failed"); n != 3 {
			t.Errorf("got %d logged failures, want 3:\n%s", n, logs)
		}
	})
}
