package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// post sends a body to a path with header fields given as alternating names and values.
func post(app http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("POST", path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	return w
}

// orders returns an app with an action that counts its runs.
func orders(c middleware.IdempotencyConfig, act func(r *dunlin.Request, n int64) dunlin.Response) (*dunlin.App, *atomic.Int64) {
	c.Logger = slog.New(slog.DiscardHandler)
	c.Anonymous = c.Anonymous || c.User == nil
	if c.Store == nil {
		c.Store = store.NewMemory(store.MemoryConfig{})
	}
	runs := new(atomic.Int64)
	app := dunlin.New(quiet)
	app.Use(middleware.Idempotency(c))
	app.Handle("*", "/orders/{id}", func(r *dunlin.Request) dunlin.Response { return act(r, runs.Add(1)) })
	return app, runs
}

func created(_ *dunlin.Request, n int64) dunlin.Response {
	return dunlin.JSON(map[string]int64{"n": n}).Status(201).Header("Location", fmt.Sprint("/made/", n)).AddHeader("X-A", "1").AddHeader("X-A", "2").
		Cookie(&http.Cookie{Name: "c", Value: "v"})
}

func TestIdempotency(t *testing.T) {
	app, runs := orders(middleware.IdempotencyConfig{User: func(r *dunlin.Request) string { return "user " + byToken(r) }}, created)
	first := post(app, "/orders/7", `{"a":1}`, "Idempotency-Key", `"k1"`)
	if first.Code != 201 || first.Body.String() != `{"n":1}` || first.Header().Get("Idempotent-Replayed") != "" {
		t.Fatalf("first request: got %d %v %s", first.Code, first.Header(), first.Body)
	}
	for _, key := range []string{`"k1"`, `k1`, `"\k1"`, ` "k1" `, `"k1";p=1`} {
		w := post(app, "/orders/7", `{"a":1}`, "Idempotency-Key", key)
		if key == `"\k1"` {
			if w.Code != 400 {
				t.Errorf("%s: got %d", key, w.Code)
			}
			continue
		}
		if w.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: got no Idempotent-Replayed: %d %s", key, w.Code, w.Body)
		}
		w.Header().Del("Idempotent-Replayed")
		if w.Code != first.Code || w.Body.String() != first.Body.String() || fmt.Sprint(w.Header()) != fmt.Sprint(first.Header()) {
			t.Errorf("%s: got %d %v %s\nwant the first response %d %v %s", key, w.Code, w.Header(), w.Body, first.Code, first.Header(), first.Body)
		}
	}
	if w := post(app, "/orders/7", `{"a":1}`, "Idempotency-Key", "", "Idempotency-Key", `"k1"`); w.Code != 400 {
		t.Errorf("an empty key line before another: got %d %s", w.Code, w.Body)
	}
	for what, w := range map[string]*httptest.ResponseRecorder{
		"another body":       post(app, "/orders/7", `{"a":2}`, "Idempotency-Key", `"k1"`),
		"no body":            post(app, "/orders/7", ``, "Idempotency-Key", `"k1"`),
		"another path":       post(app, "/orders/8", `{"a":1}`, "Idempotency-Key", `"k1"`),
		"another query":      post(app, "/orders/7?b", `{"a":1}`, "Idempotency-Key", `"k1"`),
		"another media type": post(app, "/orders/7", `{"a":1}`, "Idempotency-Key", `"k1"`, "Content-Type", "text/plain"),
	} {
		if w.Code != 422 || !strings.Contains(w.Body.String(), "already used") || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %s, want 422", what, w.Code, w.Body)
		}
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("got %d runs of the action, want 1", n)
	}
	for i, w := range []*httptest.ResponseRecorder{
		post(app, "/orders/7", `{"a":1}`, "Idempotency-Key", `"k2"`),
		post(app, "/orders/7", `{"a":1}`, "Idempotency-Key", `"k1"`, "X-Token", "another user"),
		post(app, "/orders/7", `{"a":1}`),
	} {
		if w.Code != 201 || w.Body.String() != fmt.Sprintf(`{"n":%d}`, i+2) {
			t.Errorf("other request %d: got %d %s", i, w.Code, w.Body)
		}
	}
	if w := send(app, "GET"); w.Code != 404 {
		t.Error(w.Code)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	app, runs := orders(middleware.IdempotencyConfig{Required: true}, created)
	for _, key := range []string{
		``, `""`, `"`, `"a`, `a"`, `"a"b`, `"a" "b"`, `a b`, `a,b`, `"a\"`, `"a\n"`, "\"a\x01\"", "\"ü\"", "ü", `"` + strings.Repeat("a", 256) + `"`, "\x00",
	} {
		w := post(app, "/orders/7", "", "Idempotency-Key", key)
		if w.Code != 400 || !strings.Contains(w.Body.String(), "Idempotency-Key") {
			t.Errorf("key %q: got %d %s, want 400", key, w.Code, w.Body)
		}
	}
	if w := post(app, "/orders/7", ""); w.Code != 400 || !strings.Contains(w.Body.String(), "needs an Idempotency-Key") {
		t.Errorf("without a key: got %d %s", w.Code, w.Body)
	}
	if w := post(app, "/orders/7", "", "Idempotency-Key", `"a"`, "Idempotency-Key", `"a"`); w.Code != 400 {
		t.Errorf("with two keys: got %d %s", w.Code, w.Body)
	}
	if n := runs.Load(); n != 0 {
		t.Errorf("got %d runs of the action", n)
	}
	for _, key := range []string{`"a b,c;d"`, `"\"\\"`, `"` + strings.Repeat("a", 255) + `"`, "8e03978e-40d5-43e8-bc93-6894a57f9324"} {
		if w := post(app, "/orders/7", "", "Idempotency-Key", key); w.Code != 201 {
			t.Errorf("key %q: got %d %s, want 201", key, w.Code, w.Body)
		}
	}
	req := httptest.NewRequest("GET", "/orders/7", nil)
	w := httptest.NewRecorder()
	if app.ServeHTTP(w, req); w.Code != 201 {
		t.Errorf("GET without a key: got %d", w.Code)
	}
}

// Of 1,000 concurrent requests with one key to three machines, one runs the action.
func TestIdempotencyConcurrentRequests(t *testing.T) {
	shared := store.NewMemory(store.MemoryConfig{})
	release := make(chan struct{})
	var apps []*dunlin.App
	var runs []*atomic.Int64
	for range 3 {
		app, n := orders(middleware.IdempotencyConfig{Store: shared}, func(r *dunlin.Request, n int64) dunlin.Response {
			<-release
			return created(r, n)
		})
		apps, runs = append(apps, app), append(runs, n)
	}
	var conflicts, others atomic.Int64
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			w := post(apps[i%3], "/orders/7", "x", "Idempotency-Key", `"k"`)
			switch {
			case w.Code == 409 && w.Header().Get("Retry-After") == "1":
				if conflicts.Add(1) == 999 {
					close(release) // only after all others have been refused
				}
			case w.Code != 201:
				others.Add(1)
			}
		})
	}
	wg.Wait()
	if n := runs[0].Load() + runs[1].Load() + runs[2].Load(); n != 1 || conflicts.Load() != 999 || others.Load() != 0 {
		t.Errorf("got %d runs of the action, %d times 409 and %d other statuses", n, conflicts.Load(), others.Load())
	}
	if w := post(apps[1], "/orders/7", "x", "Idempotency-Key", `"k"`); w.Code != 201 || w.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("after the first request: got %d %s", w.Code, w.Body)
	}
	if w := post(apps[2], "/orders/7", "y", "Idempotency-Key", `"k"`); w.Code != 422 {
		t.Errorf("another body: got %d %s", w.Code, w.Body)
	}
}

// The response decides whether its key can be reused, and which response a retry gets.
func TestIdempotencyOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		act    func(*dunlin.Request, int64) dunlin.Response
		first  int
		second int
		runs   int64
		replay bool
	}{
		"a refusal": {func(*dunlin.Request, int64) dunlin.Response { return dunlin.NotFound() }, 404, 404, 2, false},
		"refusal with a cause": {func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 422, Cause: errors.New("no number")})
		}, 422, 422, 2, false},
		"a conflict": {func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 409})
		}, 409, 409, 1, true},
		"a failure":  {func(*dunlin.Request, int64) dunlin.Response { return dunlin.Error(errors.New("no")) }, 500, 500, 1, true},
		"a panic":    {func(*dunlin.Request, int64) dunlin.Response { panic("no") }, 500, 500, 1, true},
		"no content": {func(*dunlin.Request, int64) dunlin.Response { return dunlin.NoContent() }, 204, 204, 1, true},
		"not now": {func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Empty().Status(503).Header("Retry-After", "1")
		}, 503, 503, 2, false},
		"503 with a cause": {func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Error(&dunlin.ProblemDetails{Status: 503, Temporary: true, Cause: store.ErrUnavailable})
		}, 503, 503, 1, true},
		"too many": {func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Empty().Status(429)
		}, 429, 429, 2, false},
		"deadline exceeded": {func(*dunlin.Request, int64) dunlin.Response { return dunlin.Error(context.DeadlineExceeded) }, 503, 503, 1, true},
		"a stream": {func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, "hi"); return err })
		}, 200, 409, 1, false},
		"a large answer": {func(*dunlin.Request, int64) dunlin.Response { return dunlin.Text(strings.Repeat("x", 2000)) }, 200, 409, 1, false},
	} {
		app, runs := orders(middleware.IdempotencyConfig{MaxBytes: 1000}, test.act)
		first := post(app, "/orders/7", "x", "Idempotency-Key", `"k"`)
		second := post(app, "/orders/7", "x", "Idempotency-Key", `"k"`)
		replay := second.Header().Get("Idempotent-Replayed") == "true"
		if first.Code != test.first || second.Code != test.second || runs.Load() != test.runs || replay != test.replay {
			t.Errorf("%s: got %d, then %d (replayed: %t) and %d runs, want %d, %d (%t) and %d", name,
				first.Code, second.Code, replay, runs.Load(), test.first, test.second, test.replay, test.runs)
		}
		if replay && first.Body.String() != second.Body.String() {
			t.Errorf("%s: got %q, then %q", name, first.Body, second.Body)
		}
	}
}

// A dropped connection or a client that disconnects does not cause a second run, unless the action reports that it gave up.
func TestIdempotencyClientDisconnects(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(r *dunlin.Request) dunlin.Response
		runs int64
	}{
		"action completes":                {func(*dunlin.Request) dunlin.Response { return dunlin.Text("done") }, 1},
		"action returns context.Canceled": {func(r *dunlin.Request) dunlin.Response { return dunlin.Error(r.Context().Err()) }, 2},
		"action aborts the connection":    {func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) }, 1},
	} {
		var leave context.CancelFunc
		app, runs := orders(middleware.IdempotencyConfig{}, func(r *dunlin.Request, _ int64) dunlin.Response {
			leave()
			return test.act(r)
		})
		for range 2 {
			ctx, cancel := context.WithCancel(context.Background())
			leave = cancel
			req := httptest.NewRequestWithContext(ctx, "POST", "/orders/7", strings.NewReader("x"))
			req.Header.Set("Idempotency-Key", "k")
			func() {
				defer func() { _ = recover() }() // the panic with http.ErrAbortHandler
				app.ServeHTTP(httptest.NewRecorder(), req)
			}()
			cancel()
		}
		if n := runs.Load(); n != test.runs {
			t.Errorf("%s: got %d runs of the action, want %d", name, n, test.runs)
		}
	}
}

func TestIdempotencyTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, runs := orders(middleware.IdempotencyConfig{TTL: time.Hour}, created)
		for _, after := range []time.Duration{0, 59 * time.Minute, 2 * time.Minute} {
			<-time.After(after)
			post(app, "/orders/7", "x", "Idempotency-Key", `"k"`)
		}
		if n := runs.Load(); n != 2 {
			t.Errorf("got %d runs of the action, want 2: the response is stored for an hour", n)
		}
	})
}

// Without its store, the middleware runs no action. A response that could not be stored is not produced a second time.
func TestIdempotencyWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &unresponsiveStore{Store: store.NewMemory(store.MemoryConfig{})}
		leaves := false
		app, runs := orders(middleware.IdempotencyConfig{Store: store.Guard(inner, store.GuardConfig{Timeout: 50 * time.Millisecond, Failures: 100})},
			func(r *dunlin.Request, n int64) dunlin.Response {
				inner.away.Store(leaves)
				return created(r, n)
			})
		inner.away.Store(true)
		if w := post(app, "/orders/7", "x", "Idempotency-Key", `"k"`); w.Code != 503 || w.Header().Get("Retry-After") != "1" || runs.Load() != 0 {
			t.Errorf("got %d %s and %d runs", w.Code, w.Body, runs.Load())
		}
		if w := post(app, "/orders/7", "x"); w.Code != 201 {
			t.Errorf("without a key: got %d", w.Code)
		}
		inner.away.Store(false)
		leaves = true
		if w := post(app, "/orders/7", "x", "Idempotency-Key", `"k"`); w.Code != 201 {
			t.Errorf("store fails during the action: got %d %s", w.Code, w.Body)
		}
		inner.away.Store(false)
		if w := post(app, "/orders/7", "x", "Idempotency-Key", `"k"`); w.Code != 409 || runs.Load() != 2 {
			t.Errorf("retry after the store has failed during the action: got %d %s and %d runs", w.Code, w.Body, runs.Load())
		}
		<-time.After(time.Minute) // until the pending keys have been released
	})
}

// Clients that are not distinguished from each other never share a cookie.
func TestIdempotencyCookies(t *testing.T) {
	app, _ := orders(middleware.IdempotencyConfig{}, created)
	for range 2 {
		post(app, "/orders/7", "x", "Idempotency-Key", `"k"`)
	}
	if w := post(app, "/orders/7", "x", "Idempotency-Key", `"k"`); w.Code != 201 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("retry by an anonymous client: got %d %v", w.Code, w.Header())
	}
	app, _ = orders(middleware.IdempotencyConfig{Anonymous: true, User: func(r *dunlin.Request) string { return r.Header("X-User") }}, created)
	for _, user := range []string{"", "ada"} {
		for again := range 2 {
			w := post(app, "/orders/7", "x", "Idempotency-Key", `"k"`, "X-User", user)
			if known := user != "" || again == 0; w.Code != 201 || (w.Header().Get("Set-Cookie") != "") != known {
				t.Errorf("user %q, retry %d: got %d %v", user, again, w.Code, w.Header())
			}
		}
	}
}

func TestIdempotencySettings(t *testing.T) {
	memory := store.NewMemory(store.MemoryConfig{})
	for what, c := range map[string]middleware.IdempotencyConfig{
		"no store": {Anonymous: true}, "a negative time": {Store: memory, Anonymous: true, TTL: -1}, "a negative lease": {Store: memory, Anonymous: true, Lease: -1},
		"a negative size": {Store: memory, Anonymous: true, MaxBytes: -1}, "a negative share": {Store: memory, Anonymous: true, StoreBytes: -1},
		"a negative quota": {Store: memory, Anonymous: true, UserBytes: -1}, "no user": {Store: memory},
	} {
		mustPanic(t, "Idempotency with "+what, func() { middleware.Idempotency(c) })
	}
}

// The response of a standard handler that declares its length is stored like that of an action.
func TestIdempotencyStoresLongHandlerAnswers(t *testing.T) {
	const long = 100 << 10
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if r.URL.Path != "/chunked" {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		}
		w.WriteHeader(http.StatusCreated)
		for ; n > 0; n -= 1000 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), min(n, 1000)))
		}
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Idempotency(middleware.IdempotencyConfig{Store: store.NewMemory(store.MemoryConfig{}), Anonymous: true, MaxBytes: 200 << 10}))
		proxy := middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger})
		behindStd := app.Group("/std")
		behindStd.UseStd(func(next http.Handler) http.Handler { return next })
		for _, g := range []interface {
			Handle(string, string, dunlin.Action, ...dunlin.Middleware) *dunlin.Route
		}{app, behindStd} {
			g.Handle("*", "/sized", proxy)
			g.Handle("*", "/chunked", proxy)
		}
		addr := serve()
		for i, c := range []struct {
			path   string
			length int
			again  int
		}{
			{"/sized", long, 201}, {"/std/sized", long, 201}, {"/sized", 1000, 201},
			{"/sized", 300 << 10, 409}, {"/std/sized", 300 << 10, 409}, {"/chunked", long, 409},
		} {
			for again, want := range []int{201, c.again} {
				resp, body := exchangeRaw(t, addr, fmt.Sprintf("POST %s?n=%d HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k%d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", c.path, c.length, i))
				if resp.StatusCode != want || want == 201 && body != strings.Repeat("x", c.length) || want == 201 && resp.Header.Get("Idempotent-Replayed") != []string{"", "true"}[again] {
					t.Errorf("%s with %d bytes, request %d: got %d with %d bytes, %v; want %d", c.path, c.length, again, resp.StatusCode, len(body), resp.Header, want)
				}
			}
		}
	})
}

func ExampleIdempotency() {
	app := dunlin.New(quiet)
	app.Use(middleware.BasicAuth(middleware.BasicAuthConfig{Realm: "payments", Check: middleware.Passwords(map[string]string{"ada": "secret"})}))
	app.Use(middleware.Idempotency(middleware.IdempotencyConfig{Store: store.NewMemory(store.MemoryConfig{}), User: middleware.User}))
	payments := 0
	app.Post("/payments", func(*dunlin.Request) dunlin.Response {
		payments++
		return dunlin.Created(fmt.Sprint("/payments/", payments))
	})
	for _, amount := range []string{"10", "10", "99"} {
		w := post(app, "/payments", amount, "Idempotency-Key", `"8e03978e"`, "Authorization", "Basic YWRhOnNlY3JldA==")
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Location"))
	}
	fmt.Println(payments, "payment")
	// Output:
	// 201 "/payments/1"
	// 201 "/payments/1"
	// 422 ""
	// 1 payment
}
