package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/middleware"
)

// No spelling of a path bypasses the middleware of another route or leaves the path of the target.
func TestProxyRefusesAmbiguousPaths(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.RequestURI) })
	target.Path = "/public"
	paths := map[string]int{
		"/admin/secret.txt": 401, "/%61dmin/secret.txt": 401, "/x/secret.txt": 200, "/a%252Fb": 200, "/a%2525": 200, "/caf%C3%A9/%E2%82%AC%F0%9F%98%80": 200, "/%E9t%E9": 200,
		"/a:b@c,d=e+f": 200, "/.well-known/x": 200, "/..a/b..": 200, "/x/": 200, "/a%20b%3Fc%23d": 200, "/%C3%80": 200, "/%C0la": 200,
		"/admin%2Fsecret.txt": 400, "/admin%2fsecret.txt": 400, "/x/..%2Fadmin/secret.txt": 400, "/..%2Fadmin/secret.txt": 400, "/%2e%2e%2fadmin": 400,
		"/..%5Cadmin": 400, "/..%5cadmin": 400, "/admin%5Csecret.txt": 400, "/admin;x/secret.txt": 400, "/x/..;/admin": 400, "/admin%3Bx/secret.txt": 400,
		"/admin%00/secret.txt": 400, "/adm%09in": 400, "/x%7F": 400, "/..%c0%afadmin": 400, "/%c0%ae%c0%ae/x": 400, "/%e0%80%af": 400, "/%f0%80%80%af": 400,
	}
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		proxy := middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger})
		app.Handle("*", "/admin/{path...}", proxy, middleware.BasicAuth(middleware.BasicAuthConfig{Realm: "x", Check: middleware.Passwords(map[string]string{"a": "b"})}))
		app.Handle("*", "/{path...}", proxy)
		addr := serve()
		for path, want := range paths {
			resp, body := exchangeRaw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
			if resp.StatusCode != want {
				t.Errorf("%s: got %d %s, want %d", path, resp.StatusCode, body, want)
			}
			if want == 200 && body != "/public"+path {
				t.Errorf("%s: the upstream got a request for %s", path, body)
			}
		}
	})
	// The same holds for the NotFound action and for rewritten paths.
	app := dunlin.New(quiet)
	app.NotFound(middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger}))
	app.Rewrite("/old/{path...}", "/new/{path...}")
	for path, want := range map[string]int{"/x": 200, "/old/x": 200, "//admin/x": 400, "/x/../admin": 400, "/x/%2e%2e/admin": 400, "/x/./y": 400, "/old/..%2Fadmin": 400, "/old/a;b": 400} {
		if w := ask(app, "POST", path); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
	// With AmbiguousPaths, the paths pass unchanged.
	app = dunlin.New(quiet)
	app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target, AmbiguousPaths: true}))
	for _, path := range []string{"/a%2Fb", "/a;b", "/a%5Cb", "/a%3Bb"} {
		if w := ask(app, "GET", path); w.Code != 200 || w.Body.String() != "/public"+path {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}

// A client cannot use Connection to remove fields set by middleware. Its own fields are removed.
func TestProxyKeepsItsOwnFields(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "user=%q id=%q hop=%q removed=%q", r.Header["X-User"], r.Header["X-Request-Id"], r.Header["X-Hop"], []string{
			r.Header.Get("Connection"), r.Header.Get("Proxy-Authorization"), r.Header.Get("X-Gone"), r.Header.Get("X-Forwarded-For"), r.Header.Get("Forwarded")})
	})
	set := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			return ext.WithHeaders(r, map[string]string{
				"X-User": "ada", "X-Request-ID": "one", "X-Gone": "", "Proxy-Authorization": "own", "X-Forwarded-For": "own", "Forwarded": "own",
			}, next)
		}
	}
	pass := func(next http.Handler) http.Handler { return next }
	for name, use := range map[string]func(app *dunlin.App){
		"WithHeaders":                func(app *dunlin.App) { app.Use(set) },
		"before standard middleware": func(app *dunlin.App) { app.Use(set); app.UseStd(pass, pass) },
		"behind standard":            func(app *dunlin.App) { app.UseStd(pass); app.Use(set) },
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
				use(app)
				app.Get("/", middleware.Proxy(middleware.ProxyConfig{Target: target}))
				addr := serve()
				for _, connection := range []string{"close, X-User, X-Request-ID, X-Hop, X-Gone", "x-user,x-request-id,x-hop\r\nConnection: close", "close, X-Hop", "close, Proxy-Authorization, X-Forwarded-For, Forwarded, Connection, X-Hop"} {
					resp, body := exchangeRaw(t, addr, "GET / HTTP/1.1\r\nHost: example.com\r\nX-User: eve\r\nX-Hop: 1\r\nX-Gone: 1\r\nConnection: "+connection+"\r\n\r\n")
					if want := `user=["ada"] id=["one"] hop=[] removed=["" "" "" "127.0.0.1" ""]`; resp.StatusCode != 200 || strings.TrimSpace(body) != want {
						t.Errorf("Connection: %s: got %d %s, want %s", connection, resp.StatusCode, body, want)
					}
				}
			})
		})
	}
}
