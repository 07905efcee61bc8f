package middleware_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

const page = "https://app.example.com"

func TestCORS(t *testing.T) {
	for name, test := range map[string]struct {
		config middleware.CORSConfig
		origin string
		want   string // expected headers, without the common prefix of their names
	}{
		"listed origin":             {middleware.CORSConfig{Origins: []string{page}}, page, "Origin: https://app.example.com Vary: Origin"},
		"another":                   {middleware.CORSConfig{Origins: []string{page}}, "https://evil.example.com", "Vary: Origin"},
		"none":                      {middleware.CORSConfig{Origins: []string{page}}, "", "Vary: Origin"},
		"null":                      {middleware.CORSConfig{Origins: []string{page}}, "null", "Vary: Origin"},
		"all":                       {middleware.CORSConfig{Origins: []string{"*"}}, page, "Origin: *"},
		"*, no Origin":              {middleware.CORSConfig{Origins: []string{"*"}}, "", "Origin: *"},
		"credentials":               {middleware.CORSConfig{Origins: []string{page}, Credentials: true}, page, "Credentials: true Origin: https://app.example.com Vary: Origin"},
		"exposed":                   {middleware.CORSConfig{Origins: []string{page}, Expose: []string{"X-A", "X-B"}}, page, "Expose: X-A, X-B Origin: https://app.example.com Vary: Origin"},
		"subdomain":                 {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, page, "Origin: https://app.example.com Vary: Origin"},
		"two labels below":          {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://a.b.example.com", "Origin: https://a.b.example.com Vary: Origin"},
		"parent domain":             {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://example.com", "Vary: Origin"},
		"same suffix without a dot": {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://evilexample.com", "Vary: Origin"},
		"continues":                 {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://app.example.com.evil.net", "Vary: Origin"},
		"empty label":               {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://.example.com", "Vary: Origin"},
		"a user":                    {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://evil.net/@a.example.com", "Vary: Origin"},
		"another scheme":            {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "http://app.example.com", "Vary: Origin"},
		"another port":              {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://app.example.com:8443", "Vary: Origin"},
		"listed port":               {middleware.CORSConfig{Origins: []string{"https://*.example.com:8443"}}, "https://app.example.com:8443", "Origin: https://app.example.com:8443 Vary: Origin"},
		"any port":                  {middleware.CORSConfig{Origins: []string{"http://localhost:*"}}, "http://localhost:5173", "Origin: http://localhost:5173 Vary: Origin"},
		"any port, default port":    {middleware.CORSConfig{Origins: []string{"http://localhost:*"}}, "http://localhost", "Origin: http://localhost Vary: Origin"},
		"any port, other host":      {middleware.CORSConfig{Origins: []string{"http://localhost:*"}}, "http://localhost.evil.net", "Vary: Origin"},
		"any port, user and host":   {middleware.CORSConfig{Origins: []string{"http://localhost:*"}}, "http://localhost:80@evil.net", "Vary: Origin"},
		"IPv6":                      {middleware.CORSConfig{Origins: []string{"http://[::1]:90"}}, "http://[::1]:90", "Origin: http://[::1]:90 Vary: Origin"},
		"sixth origin":              {middleware.CORSConfig{Origins: []string{"http://a.b", "http://b.b", "http://c.b", "http://d.b", "http://e.b", page}}, page, "Origin: https://app.example.com Vary: Origin"},
		"long origin":               {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, "https://" + strings.Repeat("a", 60_000), "Vary: Origin"},
		"two origins in one line":   {middleware.CORSConfig{Origins: []string{"https://*.example.com"}}, page + ", " + page, "Vary: Origin"},
	} {
		for _, app := range []*dunlin.App{
			installed(text("hello"), middleware.CORS(test.config)),
			newApp(text("hello"), middleware.CORS(test.config).Middleware()),
			withFeatures(text("hello"), middleware.CORS(test.config)),
		} {
			headers := []string{"Origin", test.origin}
			if test.origin == "" {
				headers = nil
			}
			if got := corsHeaders(send(app, "GET", headers...).Header()); got != test.want {
				t.Errorf("%s: got %s, want %s", name, got, test.want)
			}
		}
	}
}

// withFeatures returns an app whose features are installed after its route. They do not wrap the action, but add their headers to its
// answers.
func withFeatures(act dunlin.Action, features ...dunlin.Feature) *dunlin.App {
	app := newApp(act)
	app.Install(features...)
	return app
}

// corsHeaders formats the CORS headers.
func corsHeaders(h http.Header) string {
	var all []string
	for name, values := range h {
		short := name
		for _, prefix := range []string{"Access-Control-Allow-", "Access-Control-"} {
			short = strings.TrimPrefix(short, prefix)
		}
		if short = strings.TrimSuffix(short, "-Headers"); short != name || name == "Vary" {
			all = append(all, short+": "+strings.Join(values, "|"))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestCORSPreflight(t *testing.T) {
	config := middleware.CORSConfig{Origins: []string{page, "https://*.example.org"}, Methods: []string{"PUT"}, Headers: []string{"Content-Type", "X-Key"}, Credentials: true, MaxAge: time.Hour}
	const allowed = "Credentials: true Headers: Content-Type, X-Key Max-Age: 3600 Methods: PUT Origin: %s Vary: Origin"
	reached := false
	act := func(r *dunlin.Request) dunlin.Response {
		reached = reached || r.Method() == "OPTIONS"
		return dunlin.Text("hello")
	}
	notWrapped := dunlin.New(quiet)
	notWrapped.Put("/items/{id}", act)
	notWrapped.Install(middleware.CORS(config))
	for name, app := range map[string]*dunlin.App{
		"installed":   installed(act, middleware.CORS(config)),
		"middleware":  newApp(act, middleware.CORS(config).Middleware()),
		"not wrapped": notWrapped,
	} {
		for origin, want := range map[string]string{
			page:                      fmt.Sprintf(allowed, page),
			"https://a.example.org":   fmt.Sprintf(allowed, "https://a.example.org"),
			"https://evil.example.co": "Vary: Origin",
		} {
			w := send(app, "OPTIONS", "Origin", origin, "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "x-key")
			if got := strings.ReplaceAll(corsHeaders(w.Header()), "Allow-Headers", "Headers"); w.Code != 204 || got != want || w.Body.Len() > 0 {
				t.Errorf("%s, %s: got %d %s, want %s", name, origin, w.Code, got, want)
			}
		}
	}
	if reached {
		t.Error("a preflight ran the action")
	}
	if w := send(installed(act, middleware.CORS(config)), "OPTIONS", "Origin", page); w.Body.String() != "hello" {
		t.Errorf("OPTIONS without Access-Control-Request-Method: got %q", w.Body)
	}
	w := send(installed(act, middleware.CORS(middleware.CORSConfig{Origins: []string{"*"}, Headers: []string{"*"}, MaxAge: -1})), "OPTIONS", "Origin", "null", "Access-Control-Request-Method", "PUT")
	if got, want := corsHeaders(w.Header()), "Headers: * Max-Age: 0 Methods: PUT, PATCH, DELETE Origin: *"; strings.ReplaceAll(got, "Allow-Headers", "Headers") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// CORS keeps the action's own header, and Vary lists every field that matters.
func TestCORSKeepsHeadersOfAction(t *testing.T) {
	act := func(*dunlin.Request) dunlin.Response {
		return dunlin.Text("x").Header("Vary", "Accept").Header("Access-Control-Allow-Origin", "https://own.example.com")
	}
	w := send(installed(act, middleware.CORS(middleware.CORSConfig{Origins: []string{page, "https://*.example.net"}})), "GET", "Origin", page)
	if got, want := corsHeaders(w.Header()), "Origin: https://own.example.com Vary: Accept|Origin"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	act = func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").AddHeader("Vary", "Accept, origin") }
	w = send(installed(act, middleware.CORS(middleware.CORSConfig{Origins: []string{page}})), "GET", "Origin", page)
	if got, want := corsHeaders(w.Header()), "Origin: https://app.example.com Vary: Accept, origin"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCORSRefusesMisconfiguration(t *testing.T) {
	with := func(origins ...string) middleware.CORSConfig { return middleware.CORSConfig{Origins: origins} }
	for name, c := range map[string]middleware.CORSConfig{
		"no origins":                      {},
		"credentials for all":             {Origins: []string{"*"}, Credentials: true},
		"* and an origin":                 with("*", page),
		"null":                            with("null"),
		"no scheme":                       with("app.example.com"),
		"trailing slash":                  with(page + "/"),
		"a path":                          with(page + "/x"),
		"a user":                          with("https://u@app.example.com"),
		"capital letters":                 with("https://App.example.com"),
		"upper-case scheme":               with("HTTPS://app.example.com"),
		"default port":                    with(page + ":443"),
		"port 80":                         with("http://app.example.com:80"),
		"no port":                         with(page + ":"),
		"port 0":                          with(page + ":0"),
		"a large port":                    with(page + ":65536"),
		"port 08":                         with(page + ":08"),
		"looks alike":                     with("https://*example.com"),
		"wildcard at the end":             with("https://example.*"),
		"wildcard in the middle":          with("https://app.*.example.com"),
		"wildcard in a label":             with("https://app*.example.com"),
		"every host":                      with("https://*"),
		"top-level domain":                with("https://*.com"),
		"subdomain of an IP address":      with("https://*.192.0.2.1"),
		"wildcards for host and port":     with("https://*.example.com:*"),
		"non-ASCII host":                  with("https://bücher.example"),
		"IPv6 address, not shortest form": with("http://[0:0::1]"),
		"invalid IPv6 address":            with("http://[::x]"),
		"line break":                      with(page + "\r\nX: y"),
		"headers for all":                 {Origins: []string{page}, Headers: []string{"*"}, Credentials: true},
		"methods for all":                 {Origins: []string{page}, Methods: []string{"*"}, Credentials: true},
		"expose all":                      {Origins: []string{page}, Expose: []string{"*"}, Credentials: true},
		"no header":                       {Origins: []string{page}, Headers: []string{"X Key"}},
		"no method":                       {Origins: []string{page}, Methods: []string{""}},
		"TRACE":                           {Origins: []string{page}, Methods: []string{"TRACE"}},
		"lower-case method":               {Origins: []string{page}, Methods: []string{"put"}},
		"Cookie":                          {Origins: []string{page}, Headers: []string{"cookie"}},
		"Set-Cookie":                      {Origins: []string{page}, Expose: []string{"Set-Cookie"}},
	} {
		mustPanic(t, "CORS: "+name, func() { middleware.CORS(c) })
	}
}

// Every response has the CORS headers, including those that bypass middleware.
func TestCORSOnEveryAnswer(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		config := middleware.CORSConfig{Origins: []string{page}}
		app.Install(middleware.CORS(config))
		release := make(chan struct{})
		app.Get("/ok", text("ok"))
		app.Post("/large", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		}).MaxBody(10)
		app.Get("/unprocessable", func(*dunlin.Request) dunlin.Response {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 422})
		})
		app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("asked for") })
		app.Get("/late", func(*dunlin.Request) dunlin.Response { <-release; return dunlin.NoContent() }).Timeout(time.Millisecond)
		busy := make(chan struct{})
		app.Get("/limited", func(*dunlin.Request) dunlin.Response { close(busy); <-release; return dunlin.NoContent() }).Limit(1)
		addr := serve()
		first := make(chan struct{})
		go func() {
			defer close(first)
			exchangeRaw(t, addr, "GET /limited HTTP/1.1\r\nHost: h\r\n\r\n")
		}()
		<-busy
		for _, c := range []struct {
			request string
			status  int
		}{
			{"GET /ok HTTP/1.1\r\n", 200},
			{"GET /nowhere HTTP/1.1\r\n", 404},
			{"DELETE /ok HTTP/1.1\r\n", 405},
			{"POST /large HTTP/1.1\r\nContent-Length: 1000000\r\n", 413},
			{"GET /unprocessable HTTP/1.1\r\n", 422},
			{"GET /panic HTTP/1.1\r\n", 500},
			{"GET /late HTTP/1.1\r\n", 503},
			{"GET /limited HTTP/1.1\r\n", 503},
		} {
			resp, _ := exchangeRaw(t, addr, c.request+"Host: h\r\nOrigin: "+page+"\r\n\r\n")
			if got := corsHeaders(resp.Header); resp.StatusCode != c.status || got != "Origin: https://app.example.com Vary: Origin" {
				t.Errorf("%q: got %d %s, want %d", c.request, resp.StatusCode, got, c.status)
			}
		}
		close(release)
		<-first
	})
}

func TestCrossOrigin(t *testing.T) {
	const trusted = "https://admin.example.com"
	app := newApp(text("done"), middleware.CrossOrigin(trusted))
	std := http.NewCrossOriginProtection()
	if err := std.AddTrustedOrigin(trusted); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "PURGE"} {
		for _, site := range []string{"", "same-origin", "none", "same-site", "cross-site", "Same-Origin", "x"} {
			for _, origin := range []string{"", "null", "https://example.com", "http://example.com", "https://example.com:443", trusted, trusted + ".evil.net", "https://evil.net", "example.com", "://example.com"} {
				req := httptest.NewRequest(method, "https://example.com/items/7", nil)
				for name, value := range map[string]string{"Sec-Fetch-Site": site, "Origin": origin} {
					if value != "" {
						req.Header.Set(name, value)
					}
				}
				w := httptest.NewRecorder()
				app.ServeHTTP(w, req)
				refused := std.Check(req) != nil
				if origin == "://example.com" && site == "" {
					continue // no browser sends this origin, and net/http does not parse it as a URL
				}
				if refused != (w.Code == 403) || !refused && w.Code != 200 {
					t.Errorf("%s, Sec-Fetch-Site %q, Origin %q: got %d; refused by net/http: %v", method, site, origin, w.Code, refused)
				}
			}
		}
	}
	for _, bad := range []string{"https://*.com", "https://*example.com", "https://*.example.com:*", "https://example.com/", "null", "*"} {
		mustPanic(t, "CrossOrigin "+bad, func() { middleware.CrossOrigin(bad) })
	}
}

// CORS and CrossOrigin accept the same origins for a pattern.
func TestCrossOriginPatterns(t *testing.T) {
	origins := []string{"https://app.example.com", "https://*.preview.example.com", "http://localhost:*"}
	app := newApp(text("done"), middleware.CORS(middleware.CORSConfig{Origins: origins, Credentials: true}).Middleware(), middleware.CrossOrigin(origins...))
	for _, origin := range []string{
		"https://app.example.com", "https://a.preview.example.com", "https://a.b.preview.example.com", "http://localhost", "http://localhost:5173",
		"https://preview.example.com", "https://evilpreview.example.com", "https://a.preview.example.com.evil.net", "http://a.preview.example.com",
		"https://.preview.example.com", "https://a.preview.example.com:8443", "https://localhost", "http://localhost:0", "http://localhost:5173@evil.net", "http://localhost.evil.net", "null", "",
	} {
		for _, site := range []string{"cross-site", "same-site"} {
			w := send(app, "POST", "Origin", origin, "Sec-Fetch-Site", site)
			mayRead := w.Header().Get("Access-Control-Allow-Origin") == origin && origin != ""
			if maySend := w.Code == 200; maySend != mayRead || !maySend && w.Code != 403 {
				t.Errorf("%s, %s: got %d; readable by CORS: %v", origin, site, w.Code, mayRead)
			}
		}
	}
}

func ExampleCORS() {
	config := middleware.CORSConfig{Origins: []string{"https://app.example.com"}, Credentials: true}
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Install(middleware.CORS(config)) // before middleware that may refuse requests
	app.Install(middleware.CORS(config)) // for responses that bypass middleware
	app.Put("/users/{id}", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })

	preflight := httptest.NewRequest("OPTIONS", "/users/7", nil)
	preflight.Header.Set("Origin", "https://app.example.com")
	preflight.Header.Set("Access-Control-Request-Method", "PUT")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, preflight)
	fmt.Println(w.Code, w.Header().Get("Access-Control-Allow-Origin"))
	fmt.Println(w.Header().Get("Access-Control-Allow-Methods"))
	// Output:
	// 204 https://app.example.com
	// PUT, PATCH, DELETE
}

func ExampleCrossOrigin() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.CrossOrigin())
	app.Post("/pay", func(*dunlin.Request) dunlin.Response { return dunlin.Text("paid") })

	forged := httptest.NewRequest("POST", "/pay", nil)
	forged.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, forged)
	fmt.Println(w.Code)
	// Output: 403
}
