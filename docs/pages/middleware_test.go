package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/resilience"
	"github.com/dunlinhttp/dunlin/store"
)

func order(_ *testing.T, app *dunlin.App) {
	security := middleware.SecureHeadersConfig{}
	cors := middleware.CORSConfig{Origins: []string{"https://app.example.com"}}
	rate := middleware.RateLimitConfig{Limit: 100, Window: time.Minute}
	keys := middleware.KeyAuthConfig{Check: middleware.Keys(map[string]string{"billing": "0123456789abcdef"})}
	logger := slog.New(slog.DiscardHandler)

	app.Install( // 1. features: every answer of the app
		middleware.RequestID("X-Request-ID"),
		middleware.AccessLog(middleware.AccessLogConfig{Logger: logger}),
		middleware.SecureHeaders(security),
		middleware.CORS(cors),
		middleware.RateLimit(rate),
	)
	app.Use( // 2. refusals for all clients
		middleware.AllowedHosts("example.com"),
		middleware.CrossOrigin(cors.Origins...), // the origins that may read answers may also send
	)
	api := app.Group("/api",
		middleware.KeyAuth(keys),                    // 3. authentication
		middleware.ContentTypes("application/json"), // 4. accepted content
		middleware.Decompress(middleware.DecompressConfig{}),
		middleware.Compress(middleware.CompressConfig{}), // 5. changes of the answer: the outermost is the last
		middleware.ETag(),
	)
	api.Get("/hello", hello)
}

func accessLog(_ *testing.T, app *dunlin.App) {
	logger := slog.New(slog.DiscardHandler)
	api := app.Group("/api")

	app.Install(middleware.AccessLog(middleware.AccessLogConfig{Logger: logger})) // every answer
	api.Install(middleware.AccessLog(middleware.AccessLogConfig{Logger: logger})) // or those of a group

	log := middleware.AccessLogConfig{
		Logger: logger,
		Skip:   func(info *dunlin.AnswerInfo) bool { return info.Route() == "/health" },
		Attrs: func(info *dunlin.AnswerInfo, attrs []slog.Attr) []slog.Attr {
			return append(attrs, slog.String("agent", info.Header("User-Agent")))
		},
		Unit: time.Microsecond, // duration_us, a whole number, in place of duration_ms
	}
	app.Install(middleware.AccessLog(log))
}

func basicAndKeyAuth(t *testing.T, app *dunlin.App) {
	t.Setenv("ADA_PASSWORD", "correct horse")
	t.Setenv("BILLING_KEY", "0123456789abcdef")
	admin := app.Group("/admin", middleware.BasicAuth(middleware.BasicAuthConfig{
		Realm: "the back office",
		Check: middleware.Passwords(map[string]string{"ada": os.Getenv("ADA_PASSWORD")}),
	}))
	api := app.Group("/api", middleware.KeyAuth(middleware.KeyAuthConfig{
		Check: middleware.Keys(map[string]string{"billing": os.Getenv("BILLING_KEY")}),
	}))
	admin.Get("", hello)
	api.Get("", hello)
}

func responseCache(_ *testing.T, app *dunlin.App) {
	render := func(name string) string { return name }

	cache := middleware.NewCache(middleware.CacheConfig{App: app})
	pages := app.Group("/pages", cache.Middleware())
	pages.Get("/{name}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.HTML(render(r.Param("name"))).CachePublic(time.Minute)
	})
}

func changes(_ *testing.T, app *dunlin.App) {
	var removeUser dunlin.Action = hello

	var work middleware.Maintenance
	app.Get("/ready", app.Readiness()).Critical() // answers all the time
	app.Use(work.Middleware)

	// ... and when there is work to do:
	work.Begin(time.Now().Add(10 * time.Minute))

	app.Use(middleware.SecureOnly("example.com"))
	app.Get("/users/{id:int}/profile", middleware.RedirectTo("/people/{id}"))
	app.Get("/docs/{path...}", middleware.RedirectTo("https://docs.example.com/{path...}"))

	app.Rewrite("/v1/{path...}", "/api/{path...}")
	app.Rewrite("/{tenant:slug}.html", "/pages/{tenant}")

	app.Post("/users/{id}", middleware.MethodOverride(nil, map[string]dunlin.Action{"DELETE": removeUser}))

	old := app.Group("/2025", middleware.Deprecated(middleware.DeprecatedConfig{
		Since:  time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Sunset: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		Link:   "https://example.com/docs/2026",
	}))

	uploads := app.Group("/uploads", middleware.ContentDigest(middleware.ContentDigestConfig{Require: true}))
	old.Get("/hello", hello)
	uploads.Post("", hello)
}

func pagesOfOtherOrigins(_ *testing.T, app *dunlin.App) {
	cors := middleware.CORSConfig{
		Origins:     []string{"https://app.example.com", "https://*.preview.example.com"},
		Headers:     []string{"Content-Type", "Authorization"},
		Credentials: true,
		MaxAge:      time.Hour,
	}
	app.Install(middleware.CORS(cors))
}

func corsOfAGroup(_ *testing.T, app *dunlin.App) {
	cors := middleware.CORSConfig{Origins: []string{"https://app.example.com"}}

	api := app.Group("/api")
	api.Install(middleware.CORS(cors))
	api.Get("/hello", hello)
}

func tags(_ *testing.T, app *dunlin.App) {
	var report dunlin.Action = hello

	app.Get("/report", report, middleware.ETag())
}

func idempotencyKeys(_ *testing.T, app *dunlin.App) {
	var pay dunlin.Action = hello
	userOf := func(*dunlin.Request) string { return "ada" }

	keys := store.NewMemory(store.MemoryConfig{MaxBytes: 32 << 20}) // nothing else is in it
	payments := app.Group("/payments", middleware.Idempotency(middleware.IdempotencyConfig{
		Store: keys, StoreBytes: 32 << 20, Required: true,
		User: func(r *dunlin.Request) string { return userOf(r) },
	}))
	payments.Post("", pay)
}

// backendOf starts an upstream server.
func backendOf(t *testing.T, h http.HandlerFunc) *url.URL {
	t.Helper()
	behind := httptest.NewServer(h)
	t.Cleanup(behind.Close)
	target, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func otherServers(t *testing.T, app *dunlin.App) {
	target, err := url.Parse("http://10.0.0.9:8080")
	if err != nil {
		t.Fatal(err)
	}
	app.Handle("*", "/legacy/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target})).Timeout(10 * time.Second)

	target = backendOf(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })
	old := middleware.Proxy(middleware.ProxyConfig{Target: target, Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Path = strings.TrimPrefix(p.Out.URL.Path, "/old")
		p.Out.URL.RawPath = strings.TrimPrefix(p.Out.URL.RawPath, "/old")
	}})
	app.Handle("*", "/old/{path...}", old)
	for path, want := range map[string]string{"/old/": "/", "/old/users/7?x=1": "/users/7?x=1", "/old/a%21b": "/a%21b", "/old/old/%C3%A9": "/old/%C3%A9"} {
		resp, err := dunlintest.NewClient(app).Get("https://links.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != want {
			t.Errorf("%s: the server behind is asked for %s, %v; want %s", path, got, err, want)
		}
		_ = resp.Body.Close()
	}

	orders := middleware.Proxy(middleware.ProxyConfig{Target: backendOf(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header["X-Request-Id"], r.Header["X-User"], r.Header["Authorization"])
	})})
	keys := middleware.KeyAuthConfig{Check: middleware.Keys(map[string]string{"billing": "0123456789abcdef"})}
	known := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			return ext.WithHeaders(r, map[string]string{"X-Request-ID": r.ID(), "X-User": middleware.User(r), "Authorization": "", "Cookie": ""}, next)
		}
	}
	app.Handle("*", "/orders/{path...}", orders, middleware.KeyAuth(keys), known)
	req := httptest.NewRequest("GET", "/orders/7", nil)
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	req.Header.Set("X-User", "forged")
	w := httptest.NewRecorder()
	if app.ServeHTTP(w, req); !regexp.MustCompile(`^\[[0-9a-z]{26}\] \[billing\] \[\]$`).MatchString(w.Body.String()) {
		t.Errorf("the server behind sees %d %s", w.Code, w.Body)
	}

	breaker := resilience.NewBreaker(resilience.BreakerConfig{
		IsFailure: func(resp *http.Response) bool { return resp.StatusCode == http.StatusBadGateway },
	})
	_ = breaker

	rates := resilience.NewBreaker(resilience.BreakerConfig{})
	client := &http.Client{Transport: rates.Transport(nil), Timeout: 2 * time.Second}

	app.Get("/rates", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		req, err := http.NewRequestWithContext(r.Context(), "GET", "https://rates.example.com/today", nil)
		if err != nil {
			return dunlin.Response{}, err
		}
		resp, err := client.Do(req)
		if errors.Is(err, resilience.ErrOpen) {
			return dunlin.Response{}, &dunlin.ProblemDetails{Status: 503, Detail: "there are no rates for the moment", Temporary: true, Cause: err}
		}
		if err != nil {
			return dunlin.Response{}, &dunlin.ProblemDetails{Status: 502, Cause: err}
		}
		defer resp.Body.Close()
		rates, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return dunlin.Bytes("application/json", rates), err
	}))

	type User struct{ ID int }
	loadUser := func(context.Context) (User, error) { return User{}, nil }
	var users resilience.Flight[int, User]
	app.Get("/users/{id:int}", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		id, err := dunlin.Param[int](r, "id")
		if err != nil {
			return dunlin.Response{}, err
		}
		user, _, err := users.Do(r.Context(), id, loadUser)
		return dunlin.JSON(user), err
	}))
}

func rateLimits(_ *testing.T, app *dunlin.App) {
	var st store.Store = store.NewMemory(store.MemoryConfig{})
	keys := middleware.KeyAuthConfig{Check: middleware.Keys(map[string]string{"billing": "0123456789abcdef"})}

	app.Install(middleware.RateLimit(middleware.RateLimitConfig{Limit: 100, Window: time.Minute}))

	// By user, 10 at once at most, counted by all machines together:
	api := app.Group("/api", middleware.KeyAuth(keys), middleware.RateLimit(middleware.RateLimitConfig{
		Name: "api", Limit: 1000, Window: time.Hour, Burst: 10,
		Key:   middleware.User,
		Store: st,
	}).Middleware())
	api.Get("/hello", hello)
}

func requestIDs(_ *testing.T, app *dunlin.App) {
	app.Install(middleware.RequestID("X-Request-ID"))
}

func security(_ *testing.T, app *dunlin.App) {
	app.Install(middleware.SecureHeaders(middleware.SecureHeadersConfig{
		HSTS:                  365 * 24 * time.Hour,
		ContentSecurityPolicy: "default-src 'self'; frame-ancestors 'none'",
	}))

	app.Use(middleware.CrossOrigin())

	app.Use(middleware.AllowedHosts("example.com", "*.example.com"))

	api := app.Group("/api", middleware.ContentTypes("application/json", "*+json"))
	api.Post("/hello", hello)
}

// servedBy adds the name of the server to each answer.
func servedBy(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		return next(r).Header("X-Served-By", "links")
	}
}

// stamped adds the request's ID and the server's name to each answer, and Cache-Control: private to answers without that header.
func stamped(next dunlin.Action) dunlin.Action {
	id := ext.NewIDHeader("X-Request-ID", "X-Served-By", "links") // rendered here, once
	private := dunlin.NewHeaderBlock("Cache-Control", "private")
	return func(r *dunlin.Request) dunlin.Response {
		resp := next(r)
		if ext.Lacks(resp, private) {
			return id.SetOn(resp, r, private)
		}
		return id.SetOn(resp, r, nil)
	}
}

func TestFeatures(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	var answers [6]atomic.Int64
	block := dunlin.NewHeaderBlock("X-Served-By", "links")
	app.Install(dunlin.Hooks{
		Headers: func(_ *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
			return ext.DefaultHeaders(resp, block)
		},
		Observe: func(info *dunlin.AnswerInfo) { answers[info.Status()/100].Add(1) },
	})
	login, logins := hello, middleware.RateLimitConfig{Limit: 1, Window: time.Hour}
	app.Post("/login", login, middleware.RateLimit(logins).Middleware())
	for _, want := range []int{200, 429} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
		if w.Code != want || w.Header().Get("X-Served-By") != "links" || answers[want/100].Load() != 1 {
			t.Errorf("got %d %v, want %d", w.Code, w.Header(), want)
		}
	}
}

func TestServedBy(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	app.Get("/hello", hello, servedBy)
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/hello", nil))
	if w.Code != 200 || w.Header().Get("X-Served-By") != "links" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

func TestStamped(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	app.Use(stamped)
	app.Get("/plain", hello)
	app.Get("/public", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text("hello").CachePublic(time.Minute).Header("X-Served-By", "me")
	})
	for path, want := range map[string][2]string{"/plain": {"private", "links"}, "/public": {"public, max-age=60", "me"}} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		h := w.Header()
		if got := [2]string{h.Get("Cache-Control"), h.Get("X-Served-By")}; got != want || len(h.Get("X-Request-Id")) != 26 {
			t.Errorf("%s: got %v", path, h)
		}
	}
}
