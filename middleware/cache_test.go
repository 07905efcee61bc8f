package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/middleware"
)

// A cachedApp is an app with a cache and an action that counts its runs.
type cachedApp struct {
	*dunlin.App
	cache *middleware.ResponseCache
	runs  atomic.Int64
}

func newCachedApp(c middleware.CacheConfig, act func(r *dunlin.Request, n int64) dunlin.Response) *cachedApp {
	c.Logger = slog.New(slog.DiscardHandler)
	k := &cachedApp{App: dunlin.New(quiet), cache: middleware.NewCache(c)}
	k.Use(k.cache.Middleware())
	k.Handle("*", "/items/{id...}", func(r *dunlin.Request) dunlin.Response { return act(r, k.runs.Add(1)) })
	return k
}

// numbered returns an action that answers with the number of the run, and with header fields given as alternating names and values.
func numbered(fields ...string) func(*dunlin.Request, int64) dunlin.Response {
	return func(_ *dunlin.Request, n int64) dunlin.Response {
		resp := dunlin.Text(fmt.Sprint("run ", n))
		for i := 0; i < len(fields); i += 2 {
			resp = resp.AddHeader(fields[i], fields[i+1])
		}
		return resp
	}
}

// get requests a path with header fields given as alternating names and values.
func (k *cachedApp) get(path string, headers ...string) *httptest.ResponseRecorder {
	return k.do("GET", path, headers...)
}

func (k *cachedApp) do(method, path string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	k.ServeHTTP(w, req)
	return w
}

// is reports an error if the body of a response is not want. when names the request in the message.
func is(t *testing.T, when string, w *httptest.ResponseRecorder, want string) {
	t.Helper()
	if got := w.Body.String(); got != want {
		t.Errorf("%s: got %d %q %v, want %q", when, w.Code, got, w.Header(), want)
	}
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, numbered("Cache-Control", "max-age=10", "X-A", "1", "X-A", "2", "Etag", `"v"`, "RateLimit", "no"))
		first := k.get("/items/1")
		is(t, "the first", first, "run 1")
		if got := first.Header().Get("Cache-Status"); got != "Dunlin; fwd=miss; stored" {
			t.Errorf("Cache-Status: got %s", got)
		}
		<-time.After(3500 * time.Millisecond)
		second := k.get("/items/1")
		is(t, "the second", second, "run 1")
		h := second.Header()
		if h.Get("Age") != "3" || h.Get("Cache-Status") != "Dunlin; hit" || fmt.Sprint(h.Values("X-A")) != "[1 2]" || h.Get("Content-Type") != first.Header().Get("Content-Type") || h.Get("RateLimit") != "" {
			t.Errorf("second response: got header %v", h)
		}
		is(t, "HEAD", k.do("HEAD", "/items/1"), "")
		is(t, "another path", k.get("/items/2"), "run 2")
		is(t, "a query", k.get("/items/1?a"), "run 3")
		is(t, "another host", k.get("/items/1", "Host", "other.example"), "run 4")
		<-time.After(6500 * time.Millisecond)
		is(t, "after the entry is stale", k.get("/items/1"), "run 5")

		if w := k.get("/items/1", "If-None-Match", `"v"`); w.Code != 304 || w.Body.Len() > 0 || w.Header().Get("Etag") != `"v"` {
			t.Errorf("If-None-Match with the stored tag: got %d %v, want 304", w.Code, w.Header())
		}
		is(t, "If-None-Match with another tag", k.get("/items/1", "If-None-Match", `"w"`), "run 5")
		is(t, "a request for several ranges", k.get("/items/1", "Range", "bytes=0-1,3-4"), "run 6")
		is(t, "after that", k.get("/items/1"), "run 5")
		s := k.cache.Stats()
		if s.Hits != 5 || s.Misses != 5 || s.Passed != 1 || s.Stored != 5 || s.Entries != 4 || s.Bytes <= 0 {
			t.Errorf("got %+v", s)
		}
		k.cache.Clear()
		if s := k.cache.Stats(); s.Entries != 0 || s.Bytes != 0 {
			t.Errorf("after Clear: got %+v, want an empty cache", s)
		}
		is(t, "after Clear", k.get("/items/1"), "run 7")
	})
}

// The cache does not store responses that must not be shared.
func TestCacheDoesNotStore(t *testing.T) {
	for what, test := range map[string]struct {
		fields  []string
		headers []string
		hit     bool
	}{
		"says nothing":           {},
		"no-store":               {fields: []string{"Cache-Control", "no-store, max-age=9"}},
		"private":                {fields: []string{"Cache-Control", "private, max-age=9"}},
		"Set-Cookie":             {fields: []string{"Cache-Control", "public, max-age=9", "Set-Cookie", "a=b"}},
		"Vary: *":                {fields: []string{"Cache-Control", "max-age=9", "Vary", "*"}},
		"Vary, nine names":       {fields: []string{"Cache-Control", "max-age=9", "Vary", "a,b,c,d,e,f,g,h,i"}},
		"broken max-age":         {fields: []string{"Cache-Control", "max-age=9x"}},
		"authorized":             {fields: []string{"Cache-Control", "max-age=9"}, headers: []string{"Authorization", "Bearer a"}},
		"authorized, public":     {fields: []string{"Cache-Control", "public, max-age=9"}, headers: []string{"Authorization", "Bearer a"}, hit: true},
		"Cookie":                 {fields: []string{"Cache-Control", "max-age=9"}, headers: []string{"Cookie", "a=b"}},
		"Cookie, s-maxage":       {fields: []string{"Cache-Control", "s-maxage=9"}, headers: []string{"Cookie", "a=b"}, hit: true},
		"Age equals max-age":     {fields: []string{"Cache-Control", "max-age=9", "Age", "9"}},
		"Expires":                {fields: []string{"Expires", "Fri, 31 Dec 9999 23:59:59 GMT"}, hit: true},
		"no-cache in request":    {fields: []string{"Cache-Control", "max-age=9"}, headers: []string{"Cache-Control", "no-cache, no-store"}, hit: true},
		"max-age only":           {fields: []string{"Cache-Control", "max-age=9"}, hit: true},
		"two lines, one private": {fields: []string{"Cache-Control", "max-age=9", "Cache-Control", "private"}},
		"directive in a string":  {fields: []string{"Cache-Control", `x="private", max-age=9`}, hit: true},
	} {
		k := newCachedApp(middleware.CacheConfig{}, numbered(test.fields...))
		k.get("/items/1", test.headers...)
		want := "run 2"
		if test.hit {
			want = "run 1"
		}
		is(t, what, k.get("/items/1", test.headers...), want)
	}
	for what, act := range map[string]func(*dunlin.Request, int64) dunlin.Response{
		"a large stream": func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, strings.Repeat("x", 101)); return err }).CachePublic(time.Minute)
		},
		"a failure": func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Error(errors.New("no")).CachePublic(time.Minute)
		},
		"a large response": func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Text(strings.Repeat("x", 101)).CachePublic(time.Minute)
		},
		"a part": func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Text("x").Status(206).CachePublic(time.Minute)
		},
		"a panic":         func(*dunlin.Request, int64) dunlin.Response { panic("no") },
		"a zero lifetime": func(*dunlin.Request, int64) dunlin.Response { return dunlin.Text("x").Header("Date", "x").Cache(0) },
	} {
		k := newCachedApp(middleware.CacheConfig{MaxEntry: 100}, act)
		k.get("/items/1")
		k.get("/items/1")
		if n := k.runs.Load(); n != 2 {
			t.Errorf("%s: response was stored, want it not stored", what)
		}
	}
}

// A response for one client does not reach another, in either order of arrival.
func TestCacheCredentials(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{}, numbered("Cache-Control", "max-age=60"))
	is(t, "anybody", k.get("/items/1"), "run 1")
	is(t, "with credentials", k.get("/items/1", "Authorization", "a"), "run 2")
	is(t, "with others", k.get("/items/1", "Authorization", "b"), "run 3")
	is(t, "with Cookie", k.get("/items/1", "Cookie", "a=b"), "run 4")
	is(t, "anybody, again", k.get("/items/1"), "run 1")
}

func TestCacheVary(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{}, numbered("Cache-Control", "max-age=60", "Vary", "Accept-Language, X-B"))
	is(t, "en", k.get("/items/1", "Accept-Language", "en"), "run 1")
	is(t, "de", k.get("/items/1", "Accept-Language", "de"), "run 2")
	is(t, "none", k.get("/items/1"), "run 3")
	is(t, "two lines", k.get("/items/1", "Accept-Language", "en", "Accept-Language", "de"), "run 4")
	is(t, "another field", k.get("/items/1", "Accept-Language", "en", "X-B", "1"), "run 5")
	is(t, "en again", k.get("/items/1", "Accept-Language", "en"), "run 1")
	is(t, "de again", k.get("/items/1", "Accept-Language", "de", "X-Other", "1"), "run 2")
	is(t, "none again", k.get("/items/1"), "run 3")
	for i := range 1000 {
		k.get("/items/1", "Accept-Language", fmt.Sprint(i))
	}
	if n := k.cache.Stats().Entries; n > 64 {
		t.Errorf("got %d variants of a URL", n)
	}
}

// A client cannot poison the cache through a request field that the response does not vary by, if the field is known to change
// the meaning of a request.
func TestCachePoisoning(t *testing.T) {
	reflecting := func(r *dunlin.Request, n int64) dunlin.Response {
		host := r.Header("X-Forwarded-Host")
		if host == "" {
			host = r.Host()
		}
		return dunlin.Text(fmt.Sprint(host, " ", r.Header("X-Original-Url"), r.Header("X-Forwarded-Proto"))).CachePublic(time.Hour)
	}
	k := newCachedApp(middleware.CacheConfig{}, reflecting)
	is(t, "the attacker", k.get("/items/1", "X-Forwarded-Host", "evil.example", "X-Original-Url", "/x"), "evil.example /x")
	is(t, "the victim", k.get("/items/1"), "example.com ")
	is(t, "a client of a proxy", k.get("/items/1", "X-Forwarded-Host", "good.example"), "good.example ")
	is(t, "the attacker again", k.get("/items/1", "X-Forwarded-Proto", "nothttps"), "example.com nothttps")
	is(t, "the client without forwarded fields", k.get("/items/1"), "example.com ")
	for _, path := range []string{"/items/1?", "/items/1%3F", "/items/1%3Fa", "/items//1", "/items/1/", "/items/%2e/1", "/items/1;a", "/items/1%00"} {
		if w := k.get(path); w.Code == 200 && w.Header().Get("Cache-Status") == "Dunlin; hit" && path != "/items/1?" {
			t.Errorf("%s: got the response to another URL", path)
		}
	}
}

func TestCacheKey(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{Key: func(r *dunlin.Request) (string, bool) { return r.Header("X-Tenant"), r.Header("X-Tenant") != "none" }},
		numbered("Cache-Control", "max-age=60"))
	is(t, "a", k.get("/items/1", "X-Tenant", "a"), "run 1")
	is(t, "b", k.get("/items/1", "X-Tenant", "b"), "run 2")
	is(t, "a again", k.get("/items/1", "X-Tenant", "a"), "run 1")
	is(t, "passing by", k.get("/items/1", "X-Tenant", "none"), "run 3")
	is(t, "a request that bypasses the cache", k.get("/items/1", "X-Tenant", "none"), "run 4")
}

// 1,000 concurrent misses of the same response run the action once.
func TestCacheMissesRunActionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, headers := range [][]string{nil, {"Cookie", "a=b"}, {"Accept-Encoding", "gzip"}} {
			k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
				<-time.After(time.Second)
				return numbered("Cache-Control", "public, max-age=60", "Vary", "Accept-Encoding")(r, n)
			})
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() { is(t, "a miss", k.get("/items/1", headers...), "run 1") })
			}
			wg.Wait()
			if s := k.cache.Stats(); s.Misses != 1 || s.Hits != 999 || s.Waited != 999 {
				t.Errorf("got %+v", s)
			}
		}
	})
}

// Requests that waited for an uncacheable response then run the action concurrently. Later requests do not wait.
func TestCacheUncacheableWaitersRunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
			<-time.After(time.Second)
			return dunlin.Text("mine").Header("Cache-Control", "private")
		})
		began := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { is(t, "private", k.get("/items/1"), "mine") })
		}
		wg.Wait()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("requests took %v, want one second for the first and one for all others", took)
		}
		for range 100 {
			wg.Go(func() { k.get("/items/1") })
		}
		wg.Wait()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("later requests took %v, want a second", took-2*time.Second)
		}
	})
}

// When the leading client disconnects, another request produces the response. A waiting request ends when its own client
// disconnects.
func TestCacheLeaderDisconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
			select {
			case <-time.After(time.Second):
				return numbered("Cache-Control", "max-age=60")(r, n)
			case <-r.Context().Done():
				return dunlin.Error(r.Context().Err())
			}
		})
		ask := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			k.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/items/1", nil))
			return w
		}
		leaves, leave := context.WithCancel(context.Background())
		impatient, end := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer end()
		var wg sync.WaitGroup
		wg.Go(func() { ask(leaves) })
		synctest.Wait()
		for range 10 {
			wg.Go(func() { is(t, "who waited", ask(context.Background()), "run 2") })
		}
		wg.Go(func() {
			if w := ask(impatient); w.Code != 503 {
				t.Errorf("request whose client disconnected while it waited: got status %d", w.Code)
			}
		})
		<-time.After(500 * time.Millisecond)
		leave()
		wg.Wait()
		if n := k.runs.Load(); n != 2 {
			t.Errorf("got %d runs of the action", n)
		}
	})
}

// A leader that panics leaves no request waiting.
func TestCacheLeaderPanics(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
		if n == 1 {
			panic(http.ErrAbortHandler)
		}
		return numbered("Cache-Control", "max-age=60")(r, n)
	})
	func() {
		defer func() { _ = recover() }()
		k.get("/items/1")
	}()
	is(t, "the next", k.get("/items/1"), "run 2")
	is(t, "the next request", k.get("/items/1"), "run 2")
}

func TestCacheStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
			<-time.After(time.Second)
			if failing.Load() {
				panic("database unavailable")
			}
			return numbered("Cache-Control", "max-age=10, stale-while-revalidate=20, stale-if-error=60")(r, n)
		})
		k.get("/items/1")
		<-time.After(15 * time.Second)
		var wg sync.WaitGroup
		wg.Go(func() { is(t, "the first request after the entry is stale", k.get("/items/1"), "run 2") })
		synctest.Wait()
		began := time.Now()
		w := k.get("/items/1")
		is(t, "others meanwhile", w, "run 1")
		if took := time.Since(began); took != 0 || w.Header().Get("Cache-Status") != "Dunlin; hit; detail=stale" || w.Header().Get("Age") != "15" {
			t.Errorf("other requests: waited %v, got header %v", took, w.Header())
		}
		wg.Wait()
		is(t, "afterwards", k.get("/items/1"), "run 2")

		<-time.After(15 * time.Second)
		failing.Store(true)
		w = k.get("/items/1")
		is(t, "while the action fails", w, "run 2")
		if w.Code != 200 || w.Header().Get("Cache-Status") != "Dunlin; hit; detail=stale" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
		<-time.After(60 * time.Second)
		if w = k.get("/items/1"); w.Code != 500 {
			t.Errorf("after stale-if-error: got %d %s", w.Code, w.Body)
		}
		failing.Store(false)
		is(t, "after the action has recovered", k.get("/items/1"), "run 5")
	})
}

func TestCacheInvalidation(t *testing.T) {
	act := func(r *dunlin.Request, n int64) dunlin.Response {
		switch {
		case r.Method() == "GET":
			return numbered("Cache-Control", "max-age=60", "Vary", "X-A")(r, n)
		case r.Header("X-Fail") != "":
			return dunlin.NotFound()
		}
		return dunlin.Created("/items/2?q")
	}
	k := newCachedApp(middleware.CacheConfig{}, act)
	is(t, "1", k.get("/items/1"), "run 1")
	is(t, "/items/1, another variant", k.get("/items/1", "X-A", "a"), "run 2")
	is(t, "2", k.get("/items/2?q"), "run 3")
	is(t, "3", k.get("/items/3"), "run 4")
	k.do("POST", "/items/1", "X-Fail", "1")
	k.do("OPTIONS", "/items/1")
	is(t, "/items/1 after a request that failed", k.get("/items/1"), "run 1")
	k.do("PUT", "/items/1")
	is(t, "/items/1 after a change", k.get("/items/1"), "run 8")
	is(t, "/items/1, another variant, after a change", k.get("/items/1", "X-A", "a"), "run 9")
	is(t, "/items/2, the Location of the change", k.get("/items/2?q"), "run 10")
	is(t, "3", k.get("/items/3"), "run 4")
	k.cache.Invalidate("example.com", "/items/3", "")
	is(t, "3, invalidated", k.get("/items/3"), "run 11")
}

// A response that was being produced during an invalidation is sent, but not stored.
func TestCacheInvalidationDuringMiss(t *testing.T) {
	var k *cachedApp
	k = newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
		if n == 1 {
			k.cache.Invalidate("example.com", "/items/1", "")
		}
		return numbered("Cache-Control", "max-age=60")(r, n)
	})
	is(t, "the request in progress", k.get("/items/1"), "run 1")
	is(t, "the next", k.get("/items/1"), "run 2")
	is(t, "the next request", k.get("/items/1"), "run 2")
}

func TestCacheObeysClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{ObeyClients: true}, numbered("Cache-Control", "max-age=60"))
		if w := k.get("/items/1", "Cache-Control", "only-if-cached"); w.Code != 504 {
			t.Errorf("only-if-cached without an entry: got %d", w.Code)
		}
		is(t, "no-store", k.get("/items/1", "Cache-Control", "no-store"), "run 1")
		<-time.After(2 * time.Minute)
		is(t, "after no-store", k.get("/items/1"), "run 2")
		is(t, "only-if-cached", k.get("/items/1", "Cache-Control", "only-if-cached"), "run 2")
		is(t, "no-cache", k.get("/items/1", "Cache-Control", "no-cache"), "run 3")
		<-time.After(30 * time.Second)
		is(t, "max-age", k.get("/items/1", "Cache-Control", "max-age=30"), "run 3")
		is(t, "min-fresh", k.get("/items/1", "Cache-Control", "min-fresh=30"), "run 3")
		is(t, "more min-fresh", k.get("/items/1", "Cache-Control", "min-fresh=31"), "run 4")
		<-time.After(30 * time.Second)
		is(t, "less max-age", k.get("/items/1", "Cache-Control", "max-age=29"), "run 5")
	})
}

func TestCacheIsBounded(t *testing.T) {
	const most = 1 << 20
	k := newCachedApp(middleware.CacheConfig{MaxBytes: most}, func(r *dunlin.Request, n int64) dunlin.Response {
		return dunlin.Text(strings.Repeat("x", 5000)).CachePublic(time.Hour)
	})
	for i := range 2000 {
		k.get(fmt.Sprint("/items/", i))
		if i%10 == 0 && k.get("/items/favourite").Header().Get("Cache-Status") == "" {
			t.Fatal("no Cache-Status")
		}
	}
	s := k.cache.Stats()
	if s.Bytes > most || s.Entries < 100 || s.Evicted < 1000 {
		t.Errorf("got %+v", s)
	}
	if s.Hits < 190 {
		t.Errorf("got %d hits of 199 for a frequently requested URL: it was evicted", s.Hits)
	}
}

// Stored entries are charged to the app's memory budget. They are evicted when a client needs the memory, so no client is
// refused because of a cache.
func TestCacheInTheBudget(t *testing.T) {
	limited := quiet
	limited.Limits.Memory = 128 << 20
	onEnginesWith(t, limited, func(t *testing.T, app *dunlin.App, serve func() string) {
		const part = 256 << 10
		cache := middleware.NewCache(middleware.CacheConfig{App: app, MaxBytes: 4 << 30, MaxEntry: part})
		body := strings.Repeat("x", part)
		app.Get("/{n}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(body).CachePublic(time.Hour) }, cache.Middleware())
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			b, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(b)))
		}).MaxBody(1 << 30)
		addr := serve()
		exchangeRaw(t, addr, "GET /0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") // the app has served a request: its budget is set
		budget := app.Stats().Memory.Budget
		if budget <= 0 {
			t.Fatalf("got budget %d", budget)
		}
		req, w := httptest.NewRequest("GET", "/0", nil), void{http.Header{}}
		for i := range int(budget/part) + 10 {
			req.URL.Path = fmt.Sprint("/", i)
			app.ServeHTTP(w, req)
		}
		s := app.Stats().Memory
		if kept := s.HeldFor["cache"]; kept != cache.Stats().Bytes || kept > budget*3/4 || kept < budget/2 {
			t.Fatalf("got %d bytes of a budget of %d charged for the cache, which holds %d", kept, budget, cache.Stats().Bytes)
		}
		n := int(budget / 3)
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
		if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", n); err != nil {
			t.Fatal(err)
		}
		piece := make([]byte, 1<<20)
		for left := n; left > 0; left -= len(piece) {
			if _, err := conn.Write(piece[:min(left, len(piece))]); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") || !strings.HasSuffix(string(answer), fmt.Sprint(n)) {
			t.Errorf("body of a third of the budget: got error %v, response %.200s", err, answer)
		}
		if kept := app.Stats().Memory.HeldFor["cache"]; kept != cache.Stats().Bytes || kept > budget-int64(n)+budget/16 {
			t.Errorf("%d bytes of a budget of %d are still charged for the cache", kept, budget)
		}
		cache.Clear()
		if kept := app.Stats().Memory.HeldFor["cache"]; kept != 0 {
			t.Errorf("got %d bytes charged for an empty cache, want 0", kept)
		}
	})
}

// The cache stores a copy that shares no memory with the action or the request.
func TestCacheCopies(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.NewCache(middleware.CacheConfig{}).Middleware())
		app.Get("/{x...}", func(r *dunlin.Request) dunlin.Response {
			return dunlin.JSON(map[string]string{"path": r.Path(), "query": r.RawQuery(), "lang": r.Header("Accept-Language")}).
				Header("Vary", "Accept-Language").Header("X-Path", r.Path()).CachePublic(time.Hour)
		})
		addr := serve()
		for round := range 3 {
			for i := range 200 {
				text := fmt.Sprintf("GET /p%d?q%d HTTP/1.1\r\nHost: a\r\nAccept-Language: l%d\r\nConnection: close\r\n\r\n", i, i, i)
				resp, body := exchangeRaw(t, addr, text)
				want := fmt.Sprintf(`{"lang":"l%d","path":"/p%d","query":"q%d"}`, i, i, i)
				if body != want || resp.Header.Get("X-Path") != fmt.Sprint("/p", i) || (round > 0) != (resp.Header.Get("Cache-Status") == "Dunlin; hit") {
					t.Fatalf("round %d, request %d: got %s %v, want %s", round, i, body, resp.Header, want)
				}
			}
		}
	})
}

func TestCacheConcurrent(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{MaxBytes: 200_000}, func(r *dunlin.Request, n int64) dunlin.Response {
		return dunlin.Text(r.Path()+" "+r.Header("X-A")).Header("Vary", "X-A").CachePublic(time.Hour)
	})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 500 {
				path, a := fmt.Sprint("/items/", (i*7+w)%150), fmt.Sprint(i%3)
				switch i % 50 {
				case 0:
					k.do("DELETE", path)
				case 1:
					k.cache.Clear()
				}
				is(t, "at once", k.get(path, "X-A", a), path+" "+a)
			}
		})
	}
	wg.Wait()
	k.cache.Clear()
	if s := k.cache.Stats(); s.Bytes != 0 || s.Entries != 0 {
		t.Errorf("cleared cache: got %+v, want no entries", s)
	}
}

func TestCacheSettings(t *testing.T) {
	for what, c := range map[string]middleware.CacheConfig{
		"bytes": {MaxBytes: -1}, "an entry": {MaxEntry: -1}, "a time": {StaleWhileRevalidate: -1}, "another time": {StaleIfError: -1},
	} {
		mustPanic(t, "NewCache with negative "+what, func() { middleware.NewCache(c) })
	}
}

func TestCacheAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	for _, vary := range []string{"", "Accept-Encoding, X-A"} {
		k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
			resp := dunlin.Text("hello").CachePublic(time.Hour)
			if vary != "" {
				resp = resp.Header("Vary", vary)
			}
			return resp
		})
		req, w := httptest.NewRequest("GET", "/items/7?a=b", nil), void{http.Header{}}
		req.Header.Set("Accept-Encoding", "gzip")
		k.ServeHTTP(w, req)
		if n := testing.AllocsPerRun(2000, func() { k.ServeHTTP(w, req) }); n != 0 || k.runs.Load() != 1 {
			t.Errorf("Vary: %s: got %v allocations per hit and %d runs of the action", vary, n, k.runs.Load())
		}
	}
}

// A hit on an event loop does not allocate, from the parsed head to the encoded header fields.
func TestCacheAllocationsOnLoop(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	c := edgeCase{name: "cache", method: "GET", headers: http.Header{"Accept-Encoding": {"gzip"}}}
	runs := 0
	app := dunlin.New(quiet)
	app.Use(middleware.NewCache(middleware.CacheConfig{App: app}).Middleware())
	app.Get("/items/{id}", func(*dunlin.Request) dunlin.Response {
		runs++
		return dunlin.Text("hello").CachePublic(time.Hour).Header("Vary", "Accept-Encoding")
	})
	app.ServeHTTP(void{http.Header{}}, c.request()) // stores the response
	ask := pipelined(t, app, &c)
	if n := testing.AllocsPerRun(2000, ask); n != 0 || runs != 1 {
		t.Errorf("got %v allocations per hit and %d runs of the action", n, runs)
	}
}

func BenchmarkCache(b *testing.B) {
	k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response { return dunlin.Text("hello").CachePublic(time.Hour) })
	plain := newApp(text("hello"))
	for name, app := range map[string]http.Handler{"hit": k, "plaintext": plain} {
		b.Run(name, func(b *testing.B) {
			req, w := httptest.NewRequest("GET", "/items/7", nil), void{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				app.ServeHTTP(w, req)
			}
		})
	}
}

// BenchmarkCacheOnLoop measures a cache hit and a plain text response on an event loop, without the socket. The requests have
// the header fields of browsers, with and without proxies.
//
//	go test ./middleware -run '^$' -bench CacheOnLoop -benchtime 300x
func BenchmarkCacheOnLoop(b *testing.B) {
	browser := http.Header{
		"Accept": {"text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}, "Accept-Encoding": {"gzip, deflate, br"}, "Accept-Language": {"en"}, "Connection": {"keep-alive"},
		"Sec-Fetch-Dest": {"document"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Site": {"none"}, "Upgrade-Insecure-Requests": {"1"},
	}
	proxied := browser.Clone()
	proxied["X-Forwarded-For"], proxied["X-Forwarded-Proto"], proxied["X-Forwarded-Host"] = []string{"203.0.113.7"}, []string{"https"}, []string{"example.com"}
	names, once := []string{}, []func(){}
	for name, fields := range map[string]http.Header{"bare": {}, "browser": browser, "proxied": proxied} {
		for _, cached := range []bool{false, true} {
			app := dunlin.New(quiet)
			if cached {
				name += "-hit"
				app.Use(middleware.NewCache(middleware.CacheConfig{}).Middleware())
			}
			app.Get("/items/{id}", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello").CachePublic(time.Hour) })
			names, once = append(names, "ns-"+name), append(once, pipelined(b, app, &edgeCase{method: "GET", headers: fields}))
		}
	}
	for i, ns := range leastOf(b, once) {
		b.ReportMetric(ns, names[i])
	}
}

func ExampleResponseCache() {
	cache := middleware.NewCache(middleware.CacheConfig{})
	app := dunlin.New(quiet)
	app.Use(cache.Middleware())
	n := 0
	app.Get("/report", func(*dunlin.Request) dunlin.Response {
		n++
		return dunlin.Text(fmt.Sprint("made ", n)).CachePublic(time.Minute)
	})
	for range 2 {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", "/report", nil))
		fmt.Println(w.Body, "-", w.Header().Get("Cache-Status"))
	}
	// Output:
	// made 1 - Dunlin; fwd=miss; stored
	// made 1 - Dunlin; hit
}

// http and https are different URLs: a redirect from http to https is not served to https clients.
func TestCacheKeepsSchemesApart(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, _ int64) dunlin.Response {
		if !r.Secure() {
			return dunlin.Redirect("https://"+r.Host()+r.Path()).Header("Cache-Control", "public, max-age=60").Status(308)
		}
		return dunlin.Text("by TLS").Header("Cache-Control", "public, max-age=60")
	})
	for range 2 {
		if w := k.get("http://example.com/items/1"); w.Code != 308 {
			t.Errorf("over http: got %d %s", w.Code, w.Body)
		}
		if w := k.get("https://example.com/items/1"); w.Code != 200 || w.Body.String() != "by TLS" {
			t.Errorf("over https: got %d, Location %s", w.Code, w.Header().Get("Location"))
		}
	}
	if n := k.runs.Load(); n != 2 {
		t.Errorf("got %d runs of the action, want 2", n)
	}
	k.cache.Invalidate("example.com", "/items/1", "")
	if s := k.cache.Stats(); s.Entries != 0 {
		t.Errorf("got %d entries after Invalidate, want 0", s.Entries)
	}
}
