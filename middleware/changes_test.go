package middleware_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

func TestDeprecated(t *testing.T) {
	since, sunset := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2027, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		notice middleware.DeprecatedConfig
		want   string
	}{
		{middleware.DeprecatedConfig{Since: since}, "@1767323045  []"},
		{middleware.DeprecatedConfig{Sunset: sunset}, " Sat, 02 Jan 2027 02:04:05 GMT []"},
		{middleware.DeprecatedConfig{Since: since, Sunset: sunset, Link: "https://example.com/v2"},
			`@1767323045 Sat, 02 Jan 2027 02:04:05 GMT [<https://example.com/v2>; rel="deprecation"; type="text/html", <https://example.com/v2>; rel="sunset"; type="text/html"]`},
	} {
		h := send(newApp(text("old"), middleware.Deprecated(c.notice)), "GET").Header()
		if got := fmt.Sprint(h.Get("Deprecation"), " ", h.Get("Sunset"), " ", h.Values("Link")); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	mustPanic(t, "nothing", func() { middleware.Deprecated(middleware.DeprecatedConfig{Link: "x"}) })
	mustPanic(t, "sunset first", func() { middleware.Deprecated(middleware.DeprecatedConfig{Since: sunset, Sunset: since}) })
	mustPanic(t, "bad link", func() { middleware.Deprecated(middleware.DeprecatedConfig{Since: since, Link: "a\nb"}) })
}

func TestMaintenance(t *testing.T) {
	m := &middleware.Maintenance{Allow: func(r *dunlin.Request) bool { return r.Header("X-Operator") != "" }}
	app := newApp(text("hello"), m.Middleware)
	if w := send(app, "GET"); w.Code != 200 || m.Active() {
		t.Errorf("before: got %d", w.Code)
	}
	m.Begin(time.Now().Add(time.Hour))
	w := send(app, "GET")
	if after := w.Header().Get("Retry-After"); w.Code != 503 || after != "3600" && after != "3599" && !strings.HasPrefix(after, "35") || w.Header().Get("Cache-Control") != "no-store" || !m.Active() {
		t.Errorf("during maintenance: got %d %v", w.Code, w.Header())
	}
	if w := send(app, "GET", "X-Operator", "1"); w.Code != 200 {
		t.Errorf("request that Allow accepts: got %d", w.Code)
	}
	m.Begin(time.Now().Add(-time.Hour))
	if w := send(app, "GET"); w.Header().Get("Retry-After") != "1" {
		t.Errorf("after the expected end: got %v", w.Header())
	}
	m.End()
	if w := send(app, "GET"); w.Code != 200 {
		t.Errorf("after: got %d", w.Code)
	}
}

func TestSecureOnlyAndCanonicalHost(t *testing.T) {
	for _, c := range []struct {
		mw           dunlin.Middleware
		host, target string
		secure       bool
		want         string
	}{
		{middleware.SecureOnly(""), "example.com:8080", "/items/a%20b%2Fc?x=1&y=%20", false, "308 https://example.com/items/a%20b%2Fc?x=1&y=%20"},
		{middleware.SecureOnly("example.com:8443"), "evil.net", "/items/7", false, "308 https://example.com:8443/items/7"},
		{middleware.SecureOnly(""), "example.com", "/items/7", true, "200 "},
		{middleware.SecureOnly(""), "evil.net/x", "/items/7", false, "400 "},
		{middleware.SecureOnly(""), "a@evil.net", "/items/7", false, "400 "},
		{middleware.SecureOnly(""), "[::1]:80", "/items/7", false, "308 https://[::1]/items/7"},
		{middleware.CanonicalHost("www.example.com"), "example.com", "/items/7?q", false, "308 http://www.example.com/items/7?q"},
		{middleware.CanonicalHost("www.example.com"), "example.com", "/items/7", true, "308 https://www.example.com/items/7"},
		{middleware.CanonicalHost("www.example.com"), "WWW.example.com", "/items/7", true, "200 "},
		{middleware.CanonicalHost("www.example.com"), "www.example.com:443", "/items/7", true, "200 "},
		{middleware.CanonicalHost("www.example.com"), "www.example.com:80", "/items/7", false, "200 "},
		{middleware.CanonicalHost("www.example.com:443"), "www.example.com", "/items/7", true, "200 "},
		{middleware.CanonicalHost("www.example.com"), "www.example.com:443", "/items/7", false, "308 http://www.example.com/items/7"},
		{middleware.CanonicalHost("www.example.com"), "www.example.com:8080", "/items/7", false, "308 http://www.example.com/items/7"},
		{middleware.CanonicalHost("www.example.com"), "example.com:443", "/items/7", true, "308 https://www.example.com/items/7"},
	} {
		req := httptest.NewRequest("GET", c.target, nil)
		req.Host = c.host
		if c.secure {
			req.TLS = new(tls.ConnectionState)
		}
		w := httptest.NewRecorder()
		newApp(text("hello"), c.mw).ServeHTTP(w, req)
		if got := fmt.Sprint(w.Code, " ", w.Header().Get("Location")); got != c.want {
			t.Errorf("%s%s: got %s, want %s", c.host, c.target, got, c.want)
		}
	}
	for _, bad := range []string{"https://example.com", "example.com/", "a b", "u@example.com"} {
		mustPanic(t, "SecureOnly "+bad, func() { middleware.SecureOnly(bad) })
		mustPanic(t, "CanonicalHost "+bad, func() { middleware.CanonicalHost(bad) })
	}
	mustPanic(t, "CanonicalHost", func() { middleware.CanonicalHost("") })
}

func TestRedirectTo(t *testing.T) {
	for _, c := range []struct{ pattern, target, path, want string }{
		{"/users/{id}/profile", "/people/{id}", "/users/7/profile", "/people/7"},
		{"/users/{id}", "/people/{id}?by=id", "/users/7?x=1", "/people/7?by=id&x=1"},
		{"/docs/{path...}", "https://docs.example.com/{path...}", "/docs/a/b%20c", "https://docs.example.com/a/b%20c"},
		{"/u/{id}", "/{id}", "/u/%2Fevil.net", "/%2Fevil.net"},
		{"/u/{id}", "/{id}", "/u/evil.net", "/evil.net"},
		{"/u/{id}", "/x/{id}/{id}", "/u/a%3Fb%23c", "/x/a%3Fb%23c/a%3Fb%23c"},
		{"/docs/{path...}", "/{path...}", "/docs/%5Cevil.net", "/%5Cevil.net"},
		{"/docs/{path...}", "/{path...}", "/docs/%2Fevil.net/x", "/evil.net/x"},
		{"/docs/{path...}", "/{path...}", "/docs/a:b", "/a:b"},
		{"/tags/{tag}", "/search?tag={tag}&all=1", "/tags/a&all=0%23+%20%25", "/search?tag=a%26all%3D0%23%2B+%25&all=1"},
		{"/tags/{tag...}", "/search?tag={tag...}", "/tags/a/b&c", "/search?tag=a%2Fb%26c"},
		{"/tags/{tag}", "/tags?of=all#{tag}", "/tags/a+b?x=1", "/tags?of=all&x=1#a+b"},
		{"/old/{id}", "/new#{id}", "/old/a?x=1", "/new?x=1#a"},
		{"/docs/{path...}", "/tenant1/{path...}", "/docs/a%2F..b/.c", "/tenant1/a/..b/.c"},
		{"/docs/{path...}", "/tenant1/{path...}", "/docs/%252e%252e/x", "/tenant1/%252e%252e/x"},
		{"/docs/{path...}", "/search?of={path...}", "/docs/..%2fx", "/search?of=..%2Fx"},
	} {
		app := dunlin.New(quiet)
		app.Get(c.pattern, middleware.RedirectTo(c.target))
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if got := w.Header().Get("Location"); w.Code != 308 || got != c.want {
			t.Errorf("%s: got %d %s, want %s", c.path, w.Code, got, c.want)
		}
	}
	// No path leaves the folder of its target (RFC 3986 section 5.2.4).
	for _, c := range []struct{ pattern, target, path string }{
		{"/docs/{path...}", "https://docs.example.com/tenant1/{path...}", "/docs/..%2f..%2ftenant2/x"},
		{"/docs/{path...}", "/tenant1/{path...}", "/docs/a%2F..%2F..%2Ftenant2"},
		{"/docs/{path...}", "/tenant1/{path...}", "/docs/a%2F..%2F.."},
		{"/docs/{path...}", "/tenant1/{path...}", "/docs/.%2Fx"},
		{"/docs/{path...}", "/tenant1/{path...}", "/docs/..%5C..%5Ctenant2"},
		{"/docs/{path...}", "/tenant1/{path...}", "/docs/..;x/tenant2"},
		{"/docs/x{id}", "/tenant1/{id}/y", "/docs/x.."},
		{"/docs/x/{id}", "/tenant1/{id}/y", "/docs/x/..%2F..%2Ftenant2"},
		{"/docs/x{id}", "/tenant1/.{id}/y", "/docs/x."},
	} {
		app := dunlin.New(quiet)
		app.Get(c.pattern, middleware.RedirectTo(c.target))
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if w.Code != 404 || w.Header().Get("Location") != "" {
			t.Errorf("%s: got %d %s", c.path, w.Code, w.Header().Get("Location"))
		}
	}
	for _, bad := range []string{"/a/../{x}", "/./x", "/%2E%2e/x", "", "people", "//evil.net", "/x/{id", "/x/{}", "https://{host}/x", "{x}://h/", "https://a.{host}/"} {
		mustPanic(t, "RedirectTo "+bad, func() { middleware.RedirectTo(bad) })
	}
}

func TestMethodOverride(t *testing.T) {
	app := dunlin.New(quiet)
	named := func(name string) dunlin.Action { return text(name) }
	app.Handle("POST,PUT", "/items/{id}", middleware.MethodOverride(named("post"), map[string]dunlin.Action{"PUT": named("put"), "DELETE": named("delete")}))
	app.Get("/items/{id}", named("get"))
	for _, c := range []struct{ method, header, want string }{
		{"POST", "", "post"}, {"POST", "PUT", "put"}, {"POST", "delete", "delete"}, {"GET", "DELETE", "get"},
		{"POST", "PATCH", "405"}, {"POST", "GET", "405"}, {"PUT", "DELETE", "405"}, {"POST", "DELETE, PUT", "405"},
	} {
		headers := []string{"X-HTTP-Method-Override", c.header}
		if c.header == "" {
			headers = nil
		}
		w := send(app, c.method, headers...)
		if got := w.Body.String(); w.Code == 405 {
			if c.want != "405" || w.Header().Get("Allow") != "POST, DELETE, PUT" {
				t.Errorf("%+v: 405 %v", c, w.Header())
			}
		} else if got != c.want {
			t.Errorf("%+v: got %d %s", c, w.Code, got)
		}
	}
	for name, actions := range map[string]map[string]dunlin.Action{"nil": {"PUT": nil}, "GET": {"GET": named("x")}, "put": {"put": named("x")}, "no token": {"A B": named("x")}} {
		mustPanic(t, "MethodOverride "+name, func() { middleware.MethodOverride(nil, actions) })
	}
}

// A list split over several field lines is one list.
func TestListsInSeveralFields(t *testing.T) {
	const body = `{"hello": "world"}`
	const right, wrong = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:", "sha-512=:AAAA:"
	digested := newApp(text("done"), middleware.ContentDigest(middleware.ContentDigestConfig{Require: true}))
	site := static(t, middleware.StaticConfig{Fallback: "index.html"})
	cached := newCachedApp(middleware.CacheConfig{ObeyClients: true}, numbered("Cache-Control", "max-age=60"))
	for _, c := range []struct {
		app          *dunlin.App
		method, path string
		name         string
		lines        []string
		status       int
		coding       string
	}{
		{digested, "POST", "/items/7", "Content-Digest", []string{"md5=:AAAA:", right}, 200, ""},
		{digested, "POST", "/items/7", "Content-Digest", []string{right, wrong}, 400, ""},
		{site, "GET", "/app.4f3a09bc.js", "Accept-Encoding", []string{"gzip;q=0.5", "br"}, 200, "br"},
		{site, "GET", "/users/7", "Accept", []string{"application/json", "text/html"}, 200, ""},
		{cached.App, "GET", "/items/1", "Cache-Control", []string{"max-age=5", "only-if-cached"}, 504, ""},
	} {
		req := httptest.NewRequest(c.method, c.path, strings.NewReader(body))
		if c.method == "GET" {
			req = httptest.NewRequest(c.method, c.path, nil)
		}
		req.Header[c.name] = c.lines
		w := httptest.NewRecorder()
		if c.app.ServeHTTP(w, req); w.Code != c.status || w.Header().Get("Content-Encoding") != c.coding {
			t.Errorf("%s %q: got %d %v %s", c.name, c.lines, w.Code, w.Header(), w.Body)
		}
	}
}

func TestContentDigest(t *testing.T) {
	const body = `{"hello": "world"}`
	// Digests of RFC 9530, appendix D.
	const rfc256, rfc512 = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:", "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"
	sum, wide := sha256.Sum256([]byte(body)), sha512.Sum512([]byte(body))
	if "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":" != rfc256 || "sha-512=:"+base64.StdEncoding.EncodeToString(wide[:])+":" != rfc512 {
		t.Fatal("digestOf differs from the examples of RFC 9530")
	}
	for digest, want := range map[string]int{
		rfc256: 200, rfc512: 200, rfc256 + ", " + rfc512: 200, "md5=:AAAA:, " + rfc256: 200, rfc256 + ";x=1": 200,
		"": 400, "md5=:AAAA:": 400, // the cases of Require
		"sha-256=:" + strings.Repeat("A", 43) + "=:": 400,
		rfc512 + ", sha-256=:AAAA:":                  400,
		"sha-256=X48E":                               400,
		"sha-256":                                    400,
		"sha-256=::":                                 400,
		"sha-256=:!!!:":                              400,
		"SHA-256=:AAAA:":                             400,
		"=:AAAA:":                                    400,
		",":                                          400,
		strings.Repeat("x=:AAAA:,", 10_000) + rfc256: 400,
	} {
		app := newApp(func(r *dunlin.Request) dunlin.Response {
			got, err := r.Bytes()
			if err != nil || string(got) != body {
				t.Errorf("action: got body %q, error %v", got, err)
			}
			return dunlin.Text("done")
		}, middleware.ContentDigest(middleware.ContentDigestConfig{Require: true}))
		req := httptest.NewRequest("POST", "/items/7", strings.NewReader(body))
		if digest != "" {
			req.Header.Set("Content-Digest", digest)
		}
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if w.Code != want || want == 400 && w.Header().Get("Want-Content-Digest") != "sha-256=10, sha-512=3" {
			t.Errorf("%.60q: got %d %v, want %d", digest, w.Code, w.Header(), want)
		}
	}
	if w := send(newApp(text(body), middleware.ContentDigest(middleware.ContentDigestConfig{Require: true, Respond: true})), "GET"); w.Code != 200 || w.Header().Get("Content-Digest") != rfc256 {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
	if w := send(newApp(text(body), middleware.ContentDigest(middleware.ContentDigestConfig{})), "POST"); w.Code != 200 || w.Header().Get("Content-Digest") != "" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

// A digest describes the bytes that the client gets, including a range that a cache cuts out. Compress leaves responses with a
// digest unchanged.
func TestContentDigestOfSentBytes(t *testing.T) {
	sum := func(b []byte) string {
		hash := sha256.Sum256(b)
		return "sha-256=:" + base64.StdEncoding.EncodeToString(hash[:]) + ":"
	}
	digest := middleware.ContentDigest(middleware.ContentDigestConfig{Respond: true})
	compress := middleware.Compress(middleware.CompressConfig{})
	cache := dunlin.Middleware(nil) // placeholder: each app gets its own cache
	for name, around := range map[string][]dunlin.Middleware{
		"compressed": {compress}, "digested, compressed": {compress, digest}, "compressed, digested": {digest, compress},
		"kept": {cache}, "digested, kept": {cache, digest}, "kept, digested": {digest, cache}, "kept, compressed": {compress, cache},
	} {
		for field, act := range map[string]dunlin.Action{
			"": text(long),
			"Content-Digest": func(*dunlin.Request) dunlin.Response {
				return dunlin.Text(long).Header("Content-Digest", sum([]byte(long))).Header("ETag", `"v"`)
			},
			"Repr-Digest": func(*dunlin.Request) dunlin.Response {
				return dunlin.Text(long).Header("Repr-Digest", sum([]byte(long)))
			},
			"streamed": func(*dunlin.Request) dunlin.Response {
				return dunlin.FS(fstest.MapFS{"long.txt": {Data: []byte(long)}}, "long.txt").Header("Content-Digest", sum([]byte(long)))
			},
		} {
			chain := slices.Clone(around)
			if i := slices.IndexFunc(chain, func(m dunlin.Middleware) bool { return m == nil }); i >= 0 {
				chain[i] = middleware.NewCache(middleware.CacheConfig{}).Middleware()
			}
			app := newApp(func(r *dunlin.Request) dunlin.Response { return act(r).CachePublic(time.Minute) }, chain...)
			for range 2 {
				for _, fields := range [][]string{nil, {"Accept-Encoding", "gzip"}, {"Range", "bytes=5-9"}, {"Range", "bytes=-7", "Accept-Encoding", "gzip"}} {
					if field == "streamed" && len(fields) > 0 && fields[0] == "Range" {
						continue // the action serves the range itself and states the digest of the entire file
					}
					w := requestOf(app, "GET", "/items/7", nil, fields...)
					said, body := w.Header().Get("Content-Digest"), w.Body.Bytes()
					if w.Code >= 300 || said != "" && said != sum(body) || field != "Repr-Digest" && field != "" && said == "" {
						t.Errorf("%s, %q, %q: got %d %v", name, field, fields, w.Code, w.Header())
					}
					if w.Header().Get("Repr-Digest") != "" && w.Code == 200 && sum(body) != w.Header().Get("Repr-Digest") {
						t.Errorf("%s, %q, %q: digest does not match the body: %v", name, field, fields, w.Header())
					}
				}
			}
		}
	}
}

func FuzzContentDigest(f *testing.F) {
	f.Add("sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:, sha-512=:AAAA:")
	f.Add("sha-256=;x=:=:")
	app := newApp(text("done"), middleware.ContentDigest(middleware.ContentDigestConfig{Require: true}))
	f.Fuzz(func(t *testing.T, digest string) {
		req := httptest.NewRequest("POST", "/items/7", strings.NewReader("x"))
		req.Header.Set("Content-Digest", digest)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		sum := sha256.Sum256([]byte("x"))
		wide := sha512.Sum512([]byte("x"))
		right := strings.Contains(digest, base64.StdEncoding.EncodeToString(sum[:])) || strings.Contains(digest, base64.StdEncoding.EncodeToString(wide[:]))
		if w.Code != 400 && !(w.Code == 200 && right) {
			t.Errorf("%q: got %d", digest, w.Code)
		}
	})
}

func ExampleDeprecated() {
	app := dunlin.New(dunlin.Config{})
	v1 := app.Group("/v1", middleware.Deprecated(middleware.DeprecatedConfig{
		Since:  time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Sunset: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		Link:   "https://example.com/docs/v2",
	}))
	v1.Get("/users", func(*dunlin.Request) dunlin.Response { return dunlin.JSON([]string{"ada"}) })
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/v1/users", nil))
	fmt.Println(w.Header().Get("Deprecation"))
	fmt.Println(w.Header().Get("Sunset"))
	// Output:
	// @1767225600
	// Fri, 01 Jan 2027 00:00:00 GMT
}

func ExampleMaintenance() {
	var work middleware.Maintenance
	app := dunlin.New(dunlin.Config{})
	app.Get("/health", func(*dunlin.Request) dunlin.Response { return dunlin.Text("ok") }).Critical()
	app.Use(work.Middleware)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })

	work.Begin(time.Now().Add(10 * time.Minute))
	for _, path := range []string{"/health", "/"} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /health 200
	// / 503
}

func ExampleRedirectTo() {
	app := dunlin.New(dunlin.Config{})
	app.Get("/users/{id:int}/profile", middleware.RedirectTo("/people/{id}"))
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/users/7/profile?tab=posts", nil))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 308 /people/7?tab=posts
}

func ExampleSecureOnly() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.SecureOnly("example.com"))
	app.Get("/pay", func(*dunlin.Request) dunlin.Response { return dunlin.Text("paid") })
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/pay", nil))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 308 https://example.com/pay
}

func ExampleCanonicalHost() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.CanonicalHost("www.example.com"))
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "http://example.com/about", nil))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 308 http://www.example.com/about
}

func ExampleMethodOverride() {
	remove := func(*dunlin.Request) dunlin.Response { return dunlin.Text("removed") }
	app := dunlin.New(dunlin.Config{})
	app.Post("/users/{id}", middleware.MethodOverride(nil, map[string]dunlin.Action{"DELETE": remove}))
	req := httptest.NewRequest("POST", "/users/7", nil)
	req.Header.Set("X-HTTP-Method-Override", "DELETE")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Body)
	// Output: removed
}

func ExampleContentDigest() {
	app := dunlin.New(dunlin.Config{})
	app.Post("/", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() }, middleware.ContentDigest(middleware.ContentDigestConfig{}))
	req := httptest.NewRequest("POST", "/", strings.NewReader(`{"hello": "world"}`))
	req.Header.Set("Content-Digest", "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Code)
	// Output: 204
}
