package suite

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// The access log has the path that the client sent and the route that matched, also for responses that the action did not make.
// The features of a group hold for paths that are rewritten to its own.
func TestRewrittenPathsInLog(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var mu sync.Mutex
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(lockedWriter{&mu, &logged}, nil))
		release := make(chan struct{})
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			app = a
			app.Install(middleware.AccessLog(middleware.AccessLogConfig{Logger: log}))
			mark := func(_ *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response { return resp.Header("X-New", "1") }
			g := app.Group("/new")
			g.Install(dunlin.Hooks{Headers: mark})
			app.Rewrite("/old/{path...}", "/new/{path...}")
			app.Get("/probe", Text("probe"))
			g.Get("/fine", Text("fine"))
			g.Get("/late", func(*dunlin.Request) dunlin.Response { <-release; return dunlin.Text("late") }).Timeout(time.Millisecond)
			g.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("asked for") })
		})
		defer close(release)
		for path, status := range map[string]string{"/old/fine": "200", "/old/late": "503", "/old/panic": "500", "/old/nowhere": "404"} {
			answer := Exchange(t, addr, true, Request("GET "+path, "Connection: close"))[0]
			if !strings.Contains(answer, status) || !strings.Contains(answer, "X-New: 1") {
				t.Errorf("%s: got %s", path, answer)
			}
			route := strings.Replace(path, "/old", "/new", 1)
			if status == "404" {
				route = `""`
			}
			want := "path=" + path + " route=" + route + " status=" + status
			Soon(t, "the line "+want, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return strings.Contains(logged.String(), want)
			})
		}
		counted := false
		for _, route := range app.Stats().Routes {
			if counted = counted || route.Pattern == "/new/fine" && route.Requests > 0; strings.HasPrefix(route.Pattern, "/old") {
				t.Errorf("there is a route %s", route.Pattern)
			}
		}
		if !counted {
			t.Errorf("/new/fine was not counted: %+v", app.Stats().Routes)
		}
	})
}

// A redirect from clear text to TLS keeps the path that the client requested.
func TestRewrittenPathsAndTLS(t *testing.T) {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Rewrite("/old/{path...}", "/new/{path...}")
	app.Get("/new/{path...}", Text("never"), middleware.SecureOnly("example.com"))
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/old/x%2Fy?q", nil))
	if to := w.Header().Get("Location"); to != "https://example.com/old/x%2Fy?q" {
		t.Errorf("got %d to %s", w.Code, to)
	}
	if how := app.Explain("GET", "/old/x"); !strings.HasPrefix(how, "/old/x is rewritten to /new/x\n") {
		t.Error(how)
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
