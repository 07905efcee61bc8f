package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// A shutHandler takes no record until it is opened, as one that writes to a full pipe.
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

// A Logger that blocks for ever holds up no request, of whatever middleware it is. What was logged meanwhile comes
// when it is opened.
func TestLoggersThatBlock(t *testing.T) {
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := &url.URL{Scheme: "http", Host: away.Addr().String()}
	_ = away.Close()
	failing := func() store.Store {
		b := &broken{Store: store.NewMemory(store.MemoryConfig{})}
		b.away.Store(true)
		return store.Guard(b, store.GuardConfig{Timeout: time.Millisecond, Failures: 1, Cooldown: time.Hour})
	}
	for _, c := range []struct {
		name, method, header, line string
		act                        func(l *slog.Logger) dunlin.Action
		codes                      string
	}{
		{
			"Proxy", "GET", "", "WARN proxy: no answer target=" + target.String() + " status=502",
			func(l *slog.Logger) dunlin.Action {
				return middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: l})
			}, "[502 502]",
		},
		{
			"RateLimit", "GET", "", "WARN the store of a rate limit does not answer policy=default",
			func(l *slog.Logger) dunlin.Action {
				limited := middleware.RateLimit(middleware.Rate{Limit: 10, Window: time.Hour, Key: byToken, Store: failing(), Logger: l})
				return limited(text("hello"))
			}, "[200 200]",
		},
		{
			"Idempotency", "POST", "Idempotency-Key", "ERROR answers could not be kept under their idempotency keys",
			func(l *slog.Logger) dunlin.Action {
				once := middleware.Idempotency(middleware.IdempotencyConfig{Store: unkept{store.NewMemory(store.MemoryConfig{})}, Logger: l})
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
					t.Errorf("answers %v, want %s", codes, c.codes)
				}
				close(shut.open)
				if line := <-shut.lines; !strings.HasPrefix(line, c.line) {
					t.Errorf("logged %q, want %q", line, c.line)
				}
			})
		})
	}
}

// ... nor the clients of a cache.
func TestCacheLoggerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shut, runs := newShut(), 0
		cache := middleware.NewCache(middleware.CacheConfig{StaleIfError: time.Hour, Logger: slog.New(shut)})
		app := newApp(func(*dunlin.Request) dunlin.Response {
			if runs++; runs == 1 {
				return dunlin.Text("hello").Cache(time.Second)
			}
			return dunlin.Error(errors.New("no database"))
		}, cache.Middleware())
		is(t, "the first", send(app, "GET"), "hello")
		<-time.After(2 * time.Second)
		is(t, "when it is stale", send(app, "GET"), "hello")
		close(shut.open)
		if line, want := <-shut.lines, "WARN a stale answer is sent instead of an error status=500"; !strings.HasPrefix(line, want) || runs != 2 {
			t.Errorf("logged %q, want %q; %d runs", line, want, runs)
		}
		synctest.Wait()
	})
}

// unkept is a store that takes claims and keeps no answers.
type unkept struct{ store.Store }

func (s unkept) Set(ctx context.Context, key string, value []byte, have store.Version, ttl time.Duration) (store.Version, error) {
	if have == store.Absent {
		return s.Store.Set(ctx, key, value, have, ttl)
	}
	return store.Absent, store.ErrUnavailable
}
