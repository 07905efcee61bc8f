package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// A shutHandler blocks on each record until open is closed, like a handler that writes to a full pipe.
type shutHandler struct {
	slog.Handler
	open  chan struct{}
	lines chan string
}

func newShut() *shutHandler {
	return &shutHandler{slog.DiscardHandler, make(chan struct{}), make(chan string, 100)}
}

func (h *shutHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *shutHandler) Handle(_ context.Context, r slog.Record) error {
	<-h.open
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	h.lines <- line
	return nil
}

// A blocked Logger delays no request, in any middleware. The records logged meanwhile arrive when it is opened.
func TestBlockingLoggers(t *testing.T) {
	target := &url.URL{Scheme: "http", Host: "127.0.0.1:1"} // refuses connections
	failing := func() store.Store {
		b := &unresponsiveStore{Store: store.NewMemory(store.MemoryConfig{})}
		b.away.Store(true)
		return store.Guard(b, store.GuardConfig{Timeout: time.Millisecond, Failures: 1, Cooldown: time.Hour})
	}
	for _, c := range []struct {
		name, method, header, line string
		act                        func(l *slog.Logger) dunlin.Action
		codes                      string
	}{
		{
			"Proxy", "GET", "", "WARN proxy: no response target=" + target.String() + " status=502",
			func(l *slog.Logger) dunlin.Action {
				return middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: l})
			}, "[502 502]",
		},
		{
			"RateLimit", "GET", "", "WARN rate limit: store is unavailable policy=default",
			func(l *slog.Logger) dunlin.Action {
				limited := middleware.RateLimit(middleware.RateLimitConfig{Limit: 10, Window: time.Hour, Key: byToken, Store: failing(), Logger: l})
				return limited.Middleware()(text("hello"))
			}, "[200 200]",
		},
		{
			"Idempotency", "POST", "Idempotency-Key", "ERROR idempotency: storing responses failed",
			func(l *slog.Logger) dunlin.Action {
				once := middleware.Idempotency(middleware.IdempotencyConfig{Store: unkept{store.NewMemory(store.MemoryConfig{})}, Anonymous: true, Logger: l})
				return once(text("hello"))
			}, "[200 200]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
				shut := newShut()
				app.Handle("*", "/", c.act(slog.New(shut)))
				addr := serve()
				var codes []int
				for i := range 2 {
					req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+"/", nil)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("X-Token", "a")
					if c.header != "" {
						req.Header.Set(c.header, fmt.Sprint("k", i))
					}
					resp, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close()
					codes = append(codes, resp.StatusCode)
				}
				if fmt.Sprint(codes) != c.codes {
					t.Errorf("got statuses %v, want %s", codes, c.codes)
				}
				close(shut.open)
				if line := <-shut.lines; !strings.HasPrefix(line, c.line) {
					t.Errorf("got log line %q, want %q", line, c.line)
				}
			})
		})
	}
}

// A blocked Logger delays no client of a cache.
func TestCacheBlockingLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shut, runs := newShut(), 0
		cache := middleware.NewCache(middleware.CacheConfig{StaleIfError: time.Hour, Logger: slog.New(shut)})
		app := newApp(func(*dunlin.Request) dunlin.Response {
			if runs++; runs == 1 {
				return dunlin.Text("hello").CachePublic(time.Second)
			}
			return dunlin.Error(errors.New("no database"))
		}, cache.Middleware())
		is(t, "the first", send(app, "GET"), "hello")
		<-time.After(2 * time.Second)
		is(t, "after the entry is stale", send(app, "GET"), "hello")
		close(shut.open)
		if line, want := <-shut.lines, "WARN cache: serving a stale response after an error status=500"; !strings.HasPrefix(line, want) || runs != 2 {
			t.Errorf("got log line %q, want %q; %d runs", line, want, runs)
		}
		synctest.Wait()
	})
}

// unkept is a store that accepts claims but fails to store responses.
type unkept struct{ store.Store }

func (s unkept) Set(ctx context.Context, key string, value []byte, have store.Version, ttl time.Duration) (store.Version, error) {
	if have == store.VersionAbsent {
		return s.Store.Set(ctx, key, value, have, ttl)
	}
	return store.VersionAbsent, store.ErrUnavailable
}

// counted returns the number of log lines at level ERROR, and the number of failures they report.
func counted(lines []string) (n, failures int) {
	for _, line := range lines {
		if strings.HasPrefix(line, "ERROR ") {
			of := 1
			if _, count, ok := strings.Cut(line, " count="); ok {
				_, _ = fmt.Sscan(count, &of)
			}
			n, failures = n+1, failures+of
		}
	}
	return n, failures
}

// During a store outage, all requests that fail because of the store cause one log line a second. Failures of another kind
// cause one line each.
func TestOutageLogInterval(t *testing.T) {
	app := func(app *dunlin.App, away *unresponsiveStore) {
		guarded := store.Guard(away, store.GuardConfig{Timeout: time.Millisecond, Failures: 1, Cooldown: time.Hour})
		sessions := middleware.NewSessions[struct{ N int }](middleware.SessionConfig{Store: guarded})
		app.Post("/session", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
			return dunlin.NoContent(), sessions.Login(r, func(*struct{ N int }) error { return nil })
		}), sessions.Middleware())
		app.Post("/order", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() }, middleware.Idempotency(middleware.IdempotencyConfig{
			Store: guarded, User: func(*dunlin.Request) string { return "ada" },
		}))
		app.Post("/bug", func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("a bug")) })
		app.Post("/late", func(*dunlin.Request) dunlin.Response { return dunlin.Error(context.DeadlineExceeded) })
	}
	ask := func(t *testing.T, h http.Handler, path string, status int) {
		t.Helper()
		req := httptest.NewRequest("POST", path, nil)
		req.Header.Set("Idempotency-Key", `"x"`)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, req); w.Code != status {
			t.Errorf("POST %s: got %d %s", path, w.Code, w.Body)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		open := newShut()
		close(open.open)
		open.lines = make(chan string, 10_000)
		a, away := dunlin.New(dunlin.Config{Logger: slog.New(open)}), &unresponsiveStore{Store: store.NewMemory(store.MemoryConfig{})}
		away.away.Store(true)
		app(a, away)
		said := func() (lines []string) {
			for synctest.Wait(); len(open.lines) > 0; {
				lines = append(lines, <-open.lines)
			}
			return lines
		}
		defer func() { // with the store back, pending claims are released
			away.away.Store(false)
			<-time.After(2 * time.Hour)
		}()
		for range 100 {
			ask(t, a, "/session", 503)
			ask(t, a, "/order", 503)
		}
		if lines, failures := counted(said()); lines != 1 || failures != 1 {
			t.Errorf("200 concurrent requests: got %d lines for %d failures", lines, failures)
		}
		<-time.After(time.Second)
		ask(t, a, "/session", 503)
		lines := said()
		if n, failures := counted(lines); n != 1 || failures != 200 || !strings.Contains(lines[0], "store: unavailable") || !strings.Contains(lines[0], "route=/session") {
			t.Errorf("a second later: got lines %q", lines)
		}
		for range 5 {
			ask(t, a, "/bug", 500)
			ask(t, a, "/late", 503)
		}
		if lines, failures := counted(said()); lines != 10 || failures != 10 {
			t.Errorf("unrelated failures: got %d lines for %d failures", lines, failures)
		}
	})
	t.Run("engines", func(t *testing.T) {
		open := newShut()
		close(open.open)
		open.lines = make(chan string, 10_000)
		onEnginesWith(t, dunlin.Config{Logger: slog.New(open)}, func(t *testing.T, a *dunlin.App, serve func() string) {
			away := &unresponsiveStore{Store: store.NewMemory(store.MemoryConfig{})}
			away.away.Store(true)
			app(a, away)
			addr, began := serve(), time.Now()
			for range 100 {
				resp, _ := exchangeRaw(t, addr, "POST /session HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
					t.Fatalf("got %d %v", resp.StatusCode, resp.Header)
				}
			}
			most := 1 + int(time.Since(began)/time.Second)
			_ = a.Shutdown(t.Context())
			var lines []string
			for len(open.lines) > 0 {
				lines = append(lines, <-open.lines)
			}
			if n, _ := counted(lines); n < 1 || n > most {
				t.Errorf("got %d lines, want at most %d: %q", n, most, lines)
			}
		})
	})
}
