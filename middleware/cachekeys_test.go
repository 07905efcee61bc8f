package middleware_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/middleware"
)

func requestOf(app *dunlin.App, method, target string, body io.Reader, fields ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, body)
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	return w
}

// The path as sent is part of the cache key even after a rewrite, because the action can read it.
func TestCacheAndRewrittenPaths(t *testing.T) {
	app := dunlin.New(quiet)
	cache := middleware.NewCache(middleware.CacheConfig{})
	app.Rewrite("/old/{path...}", "/new/{path...}")
	app.Get("/new/{path...}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text(r.SentPath()).CachePublic(time.Minute)
	}, cache.Middleware())
	app.Post("/new/{path...}", func(*dunlin.Request) dunlin.Response { return dunlin.Empty() }, cache.Middleware())
	for range 2 {
		for _, path := range []string{"/old/x", "/new/x"} {
			if w := requestOf(app, "GET", path, nil); w.Body.String() != path {
				t.Errorf("%s: got the response for %s", path, w.Body)
			}
		}
	}
	if s := cache.Stats(); s.Hits != 2 || s.Entries != 2 {
		t.Errorf("got %+v", s)
	}
	requestOf(app, "POST", "/new/x", nil)
	if s := cache.Stats(); s.Entries != 0 {
		t.Errorf("after a change: got %d entries", s.Entries)
	}
}

// A background refresh of a rewritten path runs the same action.
func TestCacheRefreshesRewrittenPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := dunlin.New(quiet)
		cache := middleware.NewCache(middleware.CacheConfig{App: app})
		app.Use(cache.Middleware())
		app.Rewrite("/a", "/b")
		app.Rewrite("/b", "/a")
		for _, path := range []string{"/a", "/b"} {
			var runs atomic.Int64
			app.Get(path, func(r *dunlin.Request) dunlin.Response {
				return dunlin.Text(fmt.Sprint(path, " ", runs.Add(1))).Header("Cache-Control", "max-age=10, stale-while-revalidate=100")
			})
		}
		for i, want := range []string{"/b 1", "/b 1", "/b 2"} {
			if w := requestOf(app, "GET", "/a", nil); w.Body.String() != want {
				t.Errorf("response %d: got %s, want %s", i, w.Body, want)
			}
			if synctest.Wait(); i == 0 {
				<-time.After(15 * time.Second)
			}
		}
		if w := requestOf(app, "GET", "/b", nil); w.Body.String() != "/a 1" {
			t.Errorf("/b: got %s", w.Body)
		}
	})
}

// Different spellings of a path have separate entries, because an upstream server behind a Proxy may treat them as different
// paths. One invalidation removes all spellings, and each is refreshed separately.
func TestCacheSeparatesSpellings(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1, stale-while-revalidate=600")
		w.Header()["Date"] = nil // with a Date, a response that is sent at the end of a second is stale when it arrives
		_, _ = io.WriteString(w, r.Method+" "+r.URL.EscapedPath())
	}))
	defer behind.Close()
	target, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		cache := middleware.NewCache(middleware.CacheConfig{App: app})
		app.Use(cache.Middleware())
		app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target, AmbiguousPaths: true}))
		addr := serve()
		ask := func(method, path string) (hit, body string) {
			resp, body := exchangeRaw(t, addr, method+" "+path+" HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
			return resp.Header.Get("Cache-Status"), body
		}
		paths := []string{"/%61/b;c", "/a/b;c", "/a/b%3Bc", "/a/b%3bc", "/a%2Fb;c"}
		for _, path := range paths {
			if hit, body := ask("GET", path); body != "GET "+path || strings.Contains(hit, "hit") {
				t.Errorf("%s: got %s, %q", path, body, hit)
			}
		}
		for _, path := range paths {
			if hit, body := ask("GET", path); body != "GET "+path || !strings.Contains(hit, "hit") {
				t.Errorf("%s again: got %s, %q", path, body, hit)
			}
		}
		const stale = "/%61/b;c"
		for deadline := time.Now().Add(20 * time.Second); cache.Stats().Stored < uint64(len(paths)+1); {
			if hit, body := ask("GET", stale); body != "GET "+stale || !strings.Contains(hit, "hit") {
				t.Fatalf("%s, during its refresh: got %s, %q", stale, body, hit)
			}
			if time.Now().After(deadline) {
				t.Fatalf("not refreshed: got %+v", cache.Stats())
			}
		}
		if _, body := ask("POST", "/a/b;c"); body != "POST /a/b;c" {
			t.Errorf("POST: got %s", body)
		}
		for i, path := range paths {
			if hit, _ := ask("GET", path); strings.Contains(hit, "hit") != (i == len(paths)-1) { // an escaped slash makes a different path
				t.Errorf("%s after a change: got %q", path, hit)
			}
		}
	})
}

func TestCacheCountsKeys(t *testing.T) {
	app := dunlin.New(quiet)
	cache := middleware.NewCache(middleware.CacheConfig{MaxBytes: 1 << 20})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").CachePublic(time.Minute) }, cache.Middleware())
	const size = 4 << 10
	for i := range 300 {
		requestOf(app, "GET", "/", nil, "X-Forwarded-Host", fmt.Sprint(i, strings.Repeat("x", size)))
	}
	if s := cache.Stats(); s.Entries*size > 1<<20 {
		t.Errorf("got %d entries in 1 MiB with a field of %d bytes each: %+v", s.Entries, size, s)
	}
}

// A GET with a body bypasses the cache: it is neither served from it nor stored in it.
func TestCacheSkipsGETWithBody(t *testing.T) {
	app := dunlin.New(quiet)
	cache := middleware.NewCache(middleware.CacheConfig{})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text("[" + string(body) + "]").CachePublic(time.Minute)
	}, cache.Middleware())
	for range 2 {
		for _, body := range []string{"evil", "", "bad"} {
			if w := requestOf(app, "GET", "/", strings.NewReader(body)); w.Body.String() != "["+body+"]" {
				t.Errorf("with the body %q: got %s", body, w.Body)
			}
		}
	}
}

// A Location is a relative reference and may be escaped. The cache invalidates the URL that it resolves to.
func TestCacheInvalidatesLocations(t *testing.T) {
	for location, path := range map[string]string{
		"/items/a%2Fb": "/items/a%2Fb", "7": "/items/7", "http://EXAMPLE.com/items/7": "/items/7", "?q": "/items/make?q", "/items/x/../%37": "/items/7", "/items/%C3%A9": "/items/%C3%A9",
	} {
		app := dunlin.New(quiet)
		cache := middleware.NewCache(middleware.CacheConfig{})
		app.Use(cache.Middleware())
		app.Get("/items/{id}", func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").CachePublic(time.Minute) })
		app.Post("/items/make", func(*dunlin.Request) dunlin.Response {
			return dunlin.Empty().Status(http.StatusCreated).Header("Location", location)
		})
		requestOf(app, "GET", path, nil)
		if s := cache.Stats(); s.Entries != 1 {
			t.Fatalf("got %+v", s)
		}
		if w := requestOf(app, "POST", "/items/make", nil); cache.Stats().Entries != 0 {
			t.Errorf("Location %s: the response to %s is still stored: got %d", location, path, w.Code)
		}
	}
}

// A range request with only-if-cached does not run the action.
func TestCacheOnlyIfCachedRange(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{ObeyClients: true}, numbered("Cache-Control", "max-age=10"))
	if w := k.get("/items/1", "Cache-Control", "only-if-cached", "Range", "bytes=0-1"); w.Code != http.StatusGatewayTimeout {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// Private fields of a 304 reach only the client that caused the revalidation.
func TestCacheRevalidationOmitsPrivateFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, validating(`"v"`, `max-age=10, no-cache="X-Own"`, "X-Own", "you"))
		k.get("/items/1")
		<-time.After(11 * time.Second)
		w := k.get("/items/1")
		is(t, "the second", w, "run 1")
		if w.Header().Get("X-Own") != "you" {
			t.Errorf("the client of the revalidation got no X-Own: %v", w.Header())
		}
		if w := k.get("/items/1"); w.Header().Get("X-Own") != "" {
			t.Errorf("another: got %v", w.Header())
		}
	})
}

// Different rerouting fields have different cache keys, even if their values contain arbitrary bytes, which middleware or an
// upstream proxy may have written.
func TestCacheSeparatesReroutingFields(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, _ int64) dunlin.Response {
		return dunlin.Text(r.HeaderList("X-Host") + "|" + r.HeaderList("X-Forwarded-Host")).CachePublic(time.Minute)
	})
	ask := func(fields map[string]string) string {
		req, w := httptest.NewRequest("GET", "/items/1", nil), httptest.NewRecorder()
		for name, value := range fields {
			req.Header.Set(name, value)
		}
		k.ServeHTTP(w, req)
		return w.Body.String()
	}
	for _, own := range []string{"X-Host:b\n", "\nX-Host:b", "X-Host1:b", "1:bX-Host", "\x00X-Host"} {
		for _, fields := range []map[string]string{{"X-Forwarded-Host": "a" + own}, {"X-Forwarded-Host": "a", "X-Host": "b"}, {"X-Host": "b"}} {
			if got, want := ask(fields), fields["X-Host"]+"|"+fields["X-Forwarded-Host"]; got != want {
				t.Errorf("fields %q: got %q", fields, got)
			}
		}
	}
}

// A field that lets proxies and frameworks reroute a request is part of the cache key. The client's address is not.
func TestCacheReroutingFields(t *testing.T) {
	for _, name := range []string{
		"X-Forwarded-Host", "X-Forwarded-Scheme", "X-Forwarded-Ssl", "X-Forwarded-Path", "X-Original-Host", "X-Http-Host-Override", "X-Http-Method",
		"X-Method-Override", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Protocol", "X-Original-Uri", "X-Original-Method", "X-Original-Url", "X-Rewrite-Url",
		"X-Http-Method-Override", "X-Envoy-Original-Path", "X-Url-Scheme", "Front-End-Https", "Forwarded",
	} {
		k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, _ int64) dunlin.Response {
			return dunlin.Text(r.HeaderList(name)).CachePublic(time.Minute)
		})
		evil := "for=192.0.2.1; Host=evil, by=_x"
		for range 2 {
			is(t, name, k.get("/items/1", name, evil), evil)
			is(t, "without "+name, k.get("/items/1"), "")
		}
	}
	k := newCachedApp(middleware.CacheConfig{}, numbered("Cache-Control", "max-age=10"))
	for _, from := range []string{"for=192.0.2.1", "For=192.0.2.2;by=_x, for=\"[2001:db8::1]\""} {
		is(t, from, k.get("/items/1", "Forwarded", from), "run 1")
	}
}

// A cache around an app, or around routes of several versions, has an entry for each version.
func TestCacheSeparatesVersions(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.NewCache(middleware.CacheConfig{}).Middleware())
		numbered := func(s string) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response { return dunlin.Text(s).CachePublic(time.Minute) }
		}
		app.Get("/a", numbered("no version"))
		app.Version("v1").Get("/a", numbered("v1"))
		app.Version("v2").Get("/a", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=60")
			_, _ = io.WriteString(w, "v2")
		})))
		passing := app.Version("v3")
		passing.UseStd(func(next http.Handler) http.Handler { return next })
		passing.Get("/a", numbered("v3"))
		addr := serve()
		for range 2 {
			for version, want := range map[string]string{"v1": "v1", "v2": "v2", "v3": "v3", "v4": "406"} {
				resp, body := exchangeRaw(t, addr, "GET /a HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.x."+version+"+json\r\nConnection: close\r\n\r\n")
				if resp.StatusCode != http.StatusOK {
					body = fmt.Sprint(resp.StatusCode)
				}
				if vary := resp.Header.Values("Vary"); body != want || len(vary) != 1 || vary[0] != "Accept" {
					t.Errorf("version %s: got %s, Vary %q", version, body, vary)
				}
			}
			if _, body := exchangeRaw(t, addr, "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); body != "no version" {
				t.Errorf("without a version: got %s", body)
			}
		}
	})
}

// The cache key includes the version even if middleware between the cache and the action answers for that version.
func TestCacheKeyIncludesVersionOfMiddlewareAnswers(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.NewCache(middleware.CacheConfig{}).Middleware())
		old := app.Version("v1")
		old.Use(func(dunlin.Action) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response { return dunlin.Text("see v2").CachePublic(time.Minute) }
		})
		old.Get("/a", func(*dunlin.Request) dunlin.Response { return dunlin.Text("v1") })
		app.Version("v2").Get("/a", func(*dunlin.Request) dunlin.Response { return dunlin.Text("v2") })
		addr := serve()
		for _, c := range [][2]string{{"v1", "see v2"}, {"v2", "v2"}, {"v1", "see v2"}} {
			resp, body := exchangeRaw(t, addr, "GET /a HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.x."+c[0]+"+json\r\nConnection: close\r\n\r\n")
			if vary := resp.Header.Values("Vary"); body != c[1] || len(vary) != 1 || vary[0] != "Accept" {
				t.Errorf("version %s: got %s, Vary %q", c[0], body, vary)
			}
		}
	})
}

// Vary tells downstream caches that the version matters, even when middleware answers in place of a 406.
func TestVaryOfMiddlewareAnswerWithoutVersion(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(func(dunlin.Action) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response { return dunlin.Text("by middleware") }
		})
		app.Version("v1").Get("/a", func(*dunlin.Request) dunlin.Response { return dunlin.Text("v1") })
		addr := serve()
		resp, body := exchangeRaw(t, addr, "GET /a HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.x.v9+json\r\nConnection: close\r\n\r\n")
		if vary := resp.Header.Values("Vary"); body != "by middleware" || len(vary) != 1 || vary[0] != "Accept" {
			t.Errorf("%s, Vary %q", body, vary)
		}
	})
}

// A URL with an empty query has its own entry: a standard handler, and the upstream server of a Proxy, can see the question
// mark.
func TestCacheSeparatesEmptyQueries(t *testing.T) {
	config := quiet
	config.H2C = dunlin.H2CPriorKnowledge
	onEnginesWith(t, config, func(t *testing.T, app *dunlin.App, serve func() string) {
		cache := middleware.NewCache(middleware.CacheConfig{})
		app.Use(cache.Middleware())
		app.Rewrite("/old", "/e")
		app.Handle("*", "/e", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = io.WriteString(w, r.URL.String())
		})))
		addr := serve()
		ask := func(client *http.Client, method, target string) (hit bool, body string) {
			req, err := http.NewRequest(method, "http://"+addr+target, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(resp.Header.Get("Cache-Status"), "hit"), suite.Body(t, resp)
		}
		for _, two := range []bool{false, true} {
			var protocols http.Protocols
			protocols.SetHTTP1(!two)
			protocols.SetUnencryptedHTTP2(two)
			client := &http.Client{Transport: &http.Transport{Protocols: &protocols}, Timeout: 20 * time.Second}
			defer client.CloseIdleConnections()
			cache.Clear()
			for again := range 2 {
				for _, target := range []string{"/e", "/e?", "/e?a", "/old", "/old?", "/%65?", "/e??"} {
					want := strings.NewReplacer("/old", "/e").Replace(target)
					if hit, body := ask(client, "GET", target); body != want || hit != (again == 1) {
						t.Errorf("%s, request %d: got %q, from the cache: %t", target, again, body, hit)
					}
				}
			}
			ask(client, "POST", "/e")
			for _, target := range []string{"/e", "/e?"} {
				if hit, _ := ask(client, "GET", target); hit {
					t.Errorf("%s is still stored after a change", target)
				}
			}
		}
	})
}

// Middleware in front of a cache may remove a credential from the request after it has identified the user. The response for
// that user is shared only if it is marked public.
func TestCacheSeparatesUsersOfRemovedCredentials(t *testing.T) {
	hiding := map[string]func(app *dunlin.App, field string){
		"WithHeaders": func(app *dunlin.App, field string) {
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					user := r.Header(field)
					r.SetContext(context.WithValue(r.Context(), userKey{}, user))
					return ext.WithHeaders(r, map[string]string{field: ""}, next)
				}
			})
		},
		"UseStd": func(app *dunlin.App, field string) {
			app.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r = r.WithContext(context.WithValue(r.Context(), userKey{}, r.Header.Get(field)))
					r.Header.Del(field)
					next.ServeHTTP(w, r)
				})
			})
		},
		"UseStd after WithHeaders": func(app *dunlin.App, field string) {
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					r.SetContext(context.WithValue(r.Context(), userKey{}, r.Header(field)))
					return ext.WithHeaders(r, map[string]string{field: ""}, next)
				}
			})
			app.UseStd(func(next http.Handler) http.Handler { return next })
		},
	}
	for name, hide := range hiding {
		for _, field := range []string{"Authorization", "Cookie"} {
			t.Run(name+" "+field, func(t *testing.T) {
				onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
					hide(app, field)
					app.Use(middleware.NewCache(middleware.CacheConfig{}).Middleware())
					for path, says := range map[string]string{"/own": "max-age=60", "/all": "public, max-age=60"} {
						app.Get(path, func(r *dunlin.Request) dunlin.Response {
							user, _ := r.Context().Value(userKey{}).(string)
							return dunlin.Text("for "+user).Header("Cache-Control", says)
						})
					}
					addr := serve()
					ask := func(path, user string) string {
						line := ""
						if user != "" {
							line = field + ": " + user + "\r\n"
						}
						_, body := exchangeRaw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: example.com\r\n"+line+"Connection: close\r\n\r\n")
						return body
					}
					for _, user := range []string{"alice", "bob", "", "", "bob"} {
						if body := ask("/own", user); body != "for "+user {
							t.Errorf("user %q got the response %q", user, body)
						}
					}
					for _, user := range []string{"alice", "bob", ""} {
						if body := ask("/all", user); body != "for alice" {
							t.Errorf("public response was not served from the cache: got %q", body)
						}
					}
				})
			})
		}
	}
}

type userKey struct{}
