package middleware_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/middleware"
)

// edgeCase is a feature or a middleware with an ordinary request.
type edgeCase struct {
	name    string
	mw      []dunlin.Middleware
	feature []dunlin.Feature
	headers http.Header
	method  string  // default: POST
	most    float64 // maximum number of allocations that it adds
	direct  bool    // without trusted proxies
}

func edgeCases() []edgeCase {
	cors := middleware.CORSConfig{Origins: []string{page, "https://*.example.org"}, Credentials: true}
	security := middleware.SecureHeadersConfig{HSTS: year}
	keys := middleware.KeyAuthConfig{Header: "X-Api-Key", Check: func(_ *dunlin.Request, key string) (string, bool) { return "u", key == "k" }}
	remote := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if !r.Remote().IsValid() {
				return dunlin.NoContent()
			}
			return next(r)
		}
	}
	block := dunlin.NewHeaderBlock("X-Served-By", "a")
	headers := func(_ *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		return ext.DefaultHeaders(resp, block)
	}
	return []edgeCase{
		{"CORS", nil, []dunlin.Feature{middleware.CORS(cors)}, http.Header{"Origin": {page}}, "", 0, false},
		{"CORS-pattern", nil, []dunlin.Feature{middleware.CORS(cors)}, http.Header{"Origin": {"https://a.example.org"}}, "", 0, false},
		{"CORS-no-origin", nil, []dunlin.Feature{middleware.CORS(cors)}, http.Header{}, "", 0, false},
		{"CORS-as-middleware", []dunlin.Middleware{middleware.CORS(cors).Middleware()}, nil, http.Header{"Origin": {page}}, "", 0, false},
		{"SecureHeaders", nil, []dunlin.Feature{middleware.SecureHeaders(security)}, http.Header{}, "", 0, false},
		{"headers-of-a-feature", nil, []dunlin.Feature{dunlin.Hooks{Headers: headers}}, http.Header{}, "", 0, false},
		{"client-IP", []dunlin.Middleware{remote}, nil, http.Header{"X-Forwarded-For": {"6.6.6.6, 203.0.113.7"}}, "", 0, false},
		{"RequestID", nil, []dunlin.Feature{middleware.RequestID("X-Request-ID")}, http.Header{"X-Request-Id": {"a1"}}, "", 0, false},
		{"CrossOrigin", []dunlin.Middleware{middleware.CrossOrigin()}, nil, http.Header{"Sec-Fetch-Site": {"same-origin"}}, "", 0, false},
		{"AllowedHosts", []dunlin.Middleware{middleware.AllowedHosts("example.com", "*.example.org")}, nil, http.Header{}, "", 0, false},
		{"ContentTypes", []dunlin.Middleware{middleware.ContentTypes("application/json")}, nil, http.Header{}, "", 0, false},
		{"KeyAuth", []dunlin.Middleware{middleware.KeyAuth(keys)}, nil, http.Header{"X-Api-Key": {"k"}}, "", 1, false}, // the user's name is stored in the request
	}
}

// apps returns an app with the middleware of the case, and one without it.
func (c *edgeCase) apps() (with, bare *dunlin.App) {
	make := func(mw []dunlin.Middleware, features []dunlin.Feature) *dunlin.App {
		config := quiet
		if !c.direct {
			config.Proxy.Trusted = []string{"192.0.2.0/24"}
		}
		app := dunlin.New(config)
		app.Install(features...)
		app.Use(mw...)
		app.Post("/items/{id}", text("Hello, World!"))
		return app
	}
	return make(c.mw, c.feature), make(nil, nil)
}

func (c *edgeCase) request() *http.Request {
	req := httptest.NewRequest(cmp.Or(c.method, "POST"), "/items/7", nil)
	for name, values := range c.headers {
		req.Header[name] = values
	}
	return req
}

// An ordinary request adds no more allocations than its case allows.
func TestEdgeAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	for _, c := range edgeCases() {
		with, bare := c.apps()
		req, w := c.request(), void{http.Header{}}
		measure := func(app *dunlin.App) float64 {
			return testing.AllocsPerRun(2000, func() { app.ServeHTTP(w, req) })
		}
		if n := measure(with) - measure(bare); n > c.most {
			t.Errorf("%s adds %v allocations to a request, want at most %v", c.name, n, c.most)
		}
	}
}

// BenchmarkEdge measures each middleware on net/http without its server. Subtract bare for the added cost.
func BenchmarkEdge(b *testing.B) {
	for i, c := range edgeCases() {
		with, bare := c.apps()
		req, w := c.request(), void{http.Header{}}
		run := func(name string, app *dunlin.App) {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					app.ServeHTTP(w, req)
				}
			})
		}
		if i == 0 {
			run("bare", bare)
		}
		run(c.name, with)
	}
}

// The scheme of a request is read before the action runs, because a standard handler may remove the field that states it.
func TestEdgeSecureBeforeAction(t *testing.T) {
	config := quiet
	config.Proxy.Trusted = []string{"127.0.0.1"}
	onEnginesWith(t, config, func(t *testing.T, app *dunlin.App, serve func() string) {
		secure := middleware.SecureHeaders(middleware.SecureHeadersConfig{HSTS: year})
		takes := func(_ http.ResponseWriter, r *http.Request) { r.Header.Del("X-Forwarded-Proto") }
		alone, joined := app.Group("/alone"), app.Group("/joined")
		alone.Install(secure)
		alone.Mount("/", http.HandlerFunc(takes))
		joined.Install(middleware.RequestID("X-Request-ID"), secure)
		joined.Mount("/", http.HandlerFunc(takes))
		addr := serve()
		for _, path := range []string{"/alone", "/joined"} {
			resp, _ := exchangeRaw(t, addr, "GET "+path+"/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n\r\n")
			if resp.Header.Get("Strict-Transport-Security") == "" {
				t.Errorf("%s: got %v", path, resp.Header)
			}
		}
	})
}
