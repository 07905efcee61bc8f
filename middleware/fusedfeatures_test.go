package middleware_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Fused features produce the same responses as unfused ones, between which another feature is installed, and as their middleware.
func TestFusedFeatures(t *testing.T) {
	pass := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response { return next(r) }
	}
	origins := []string{page, "https://b.example", "https://c.example", "https://d.example", "https://e.example", "https://*.example.org"}
	makers := []func() dunlin.Feature{
		func() dunlin.Feature { return middleware.RequestID("X-Request-ID") },
		func() dunlin.Feature { return middleware.RequestID("X-Other") },
		func() dunlin.Feature {
			return middleware.CORS(middleware.CORSConfig{Origins: origins, Credentials: true, Expose: []string{"X-Request-ID"}})
		},
		func() dunlin.Feature { return middleware.CORS(middleware.CORSConfig{Origins: []string{"*"}}) },
		func() dunlin.Feature { return middleware.SecureHeaders(middleware.SecureHeadersConfig{HSTS: year}) },
		func() dunlin.Feature {
			return middleware.SecureHeaders(middleware.SecureHeadersConfig{FrameOptions: "-", ContentSecurityPolicy: "default-src 'none'"})
		},
		func() dunlin.Feature {
			return middleware.RateLimit(middleware.RateLimitConfig{Limit: 5, Window: time.Hour})
		},
		func() dunlin.Feature {
			return middleware.RateLimit(middleware.RateLimitConfig{Name: "more", Limit: 1_000_000, Window: time.Hour})
		},
	}
	block := dunlin.NewHeaderBlock("Vary", "Accept-Language", "X-Frame-Options", "SAMEORIGIN")
	actions := map[string]dunlin.Action{
		"text":         func(*dunlin.Request) dunlin.Response { return dunlin.Text("text") },
		"empty":        func(*dunlin.Request) dunlin.Response { return dunlin.Empty() },
		"no content":   func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() },
		"json":         func(*dunlin.Request) dunlin.Response { return dunlin.JSON("json") },
		"header block": func(*dunlin.Request) dunlin.Response { return dunlin.Text("block").With(block) },
		"own Vary":     func(*dunlin.Request) dunlin.Response { return dunlin.Text("varies").Header("Vary", "Accept, origin") },
		"Vary any":     func(*dunlin.Request) dunlin.Response { return dunlin.JSON("any").AddHeader("Vary", "*") },
		"own RateLimit": func(*dunlin.Request) dunlin.Response {
			return dunlin.Text("limited").Header("RateLimit", `"own";r=1;t=1`)
		},
		"own RateLimit-Policy": func(*dunlin.Request) dunlin.Response { return dunlin.Text("p").Header("RateLimit-Policy", `"own";q=1`) },
		"own ID header":        func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.ID()).Header("x-request-id", "mine") },
		"empty ID header":      func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.ID()).Header("X-Request-ID", "") },
		"own CORS header": func(*dunlin.Request) dunlin.Response {
			return dunlin.Text("a").Header("Access-Control-Allow-Origin", "null")
		},
		"error":          func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("test")) },
		"invalid header": func(*dunlin.Request) dunlin.Response { return dunlin.Text("bad").Header("X-Bad", "a\nb") },
		"zero response":  func(*dunlin.Request) dunlin.Response { return dunlin.Response{} },
		"panic":          func(*dunlin.Request) dunlin.Response { panic("test") },
		"SetID": func(r *dunlin.Request) dunlin.Response {
			ext.SetID(r, "by the action")
			return dunlin.Text("identified")
		},
	}
	requests := map[string][]string{
		"plain":                    nil,
		"origin":                   {"Origin", page},
		"second origin":            {"Origin", "https://b.example"},
		"fifth origin":             {"Origin", "https://e.example"},
		"origin pattern":           {"Origin", "https://x.example.org"},
		"unknown origin":           {"Origin", "https://example.net"},
		"id":                       {"X-Request-Id", "0b7f7fa2-8a3c-4a2e-9f36-4e1b1c0a7f55", "Origin", page},
		"long id":                  {"X-Request-Id", strings.Repeat("x", 128)},
		"bad id":                   {"X-Request-Id", "a b", "X-Other", "other"},
		"preflight":                {"OPTIONS", "", "Origin", page, "Access-Control-Request-Method", "PUT"},
		"refused preflight":        {"OPTIONS", "", "Origin", "https://example.net", "Access-Control-Request-Method", "PUT"},
		"trusted proxy":            {"X-Forwarded-Proto", "https", "X-Forwarded-For", "203.0.113.7"},
		"trusted proxy and origin": {"X-Forwarded-Proto", "https", "X-Forwarded-For", "203.0.113.8", "Origin", page},
	}
	own := regexp.MustCompile(`(?m)^(X-Request-Id|X-Other): [0-9a-hj-km-np-tv-z]{26}\r$`)
	combinations := [][]int{{0, 2, 4, 6}, {6, 3, 5}, {7, 4, 6, 0, 2, 1}, {4, 2}}
	if !invariants.Enabled {
		random := rand.New(rand.NewPCG(18, 18))
		for range 8 {
			combinations = append(combinations, random.Perm(len(makers))[:1+random.IntN(5)])
		}
	}
	for _, chosen := range combinations {
		synctest.Test(t, func(t *testing.T) { // with a fake clock
			now := time.Now()
			register := func(install func(*dunlin.App, dunlin.Feature)) *dunlin.App {
				config := quiet
				config.Proxy.Trusted = []string{"192.0.2.0/24"}
				app := dunlin.New(config)
				for _, i := range chosen {
					install(app, makers[i]())
				}
				for name, act := range actions {
					app.Handle("*", "/"+strings.ReplaceAll(name, " ", "-"), act)
				}
				return app
			}
			fused := register(func(app *dunlin.App, f dunlin.Feature) { app.Install(f) })
			unfused := register(func(app *dunlin.App, f dunlin.Feature) { app.Install(f, dunlin.Hooks{Wrap: pass}) })
			asMiddleware := register(func(app *dunlin.App, f dunlin.Feature) { app.Use(f.Middleware()) })
			for name := range actions {
				for kind, fields := range requests {
					req := httptest.NewRequest("GET", "/"+strings.ReplaceAll(name, " ", "-"), nil)
					for i := 0; i < len(fields); i += 2 {
						if fields[i] == "OPTIONS" {
							req.Method = "OPTIONS"
						} else {
							req.Header.Set(fields[i], fields[i+1])
						}
					}
					format := func(status int, lines []string) string {
						slices.Sort(lines)
						text := own.ReplaceAllString(strings.Join(lines, "\r\n")+"\r\n", "$1: random\r")
						return fmt.Sprint(status, "\n", text)
					}
					onWire := func(app *dunlin.App) string {
						status, head := piped(t, app, req, now)()
						return format(status, strings.Split(strings.TrimSuffix(string(head), "\r\n"), "\r\n"))
					}
					onStd := func(app *dunlin.App) string {
						w := httptest.NewRecorder()
						app.ServeHTTP(w, req)
						var lines []string
						for name, values := range w.Header() {
							for _, v := range values {
								lines = append(lines, http.CanonicalHeaderKey(name)+": "+v)
							}
						}
						return format(w.Code, lines)
					}
					for engine, on := range map[string]func(*dunlin.App) string{"wire": onWire, "std": onStd} {
						got := on(fused)
						if want := on(unfused); got != want {
							t.Fatalf("%v, %s, %s, %s:\n%s\nunfused:\n%s", chosen, engine, name, kind, got, want)
						}
						if want := on(asMiddleware); got != want {
							t.Fatalf("%v, %s, %s, %s:\n%s\nas middleware:\n%s", chosen, engine, name, kind, got, want)
						}
					}
				}
			}
		})
	}
}

// An ID passed to SetID reaches the response unchanged, or not at all.
func TestRequestIDInjected(t *testing.T) {
	others := []dunlin.Feature{middleware.SecureHeaders(middleware.SecureHeadersConfig{}), middleware.CORS(middleware.CORSConfig{Origins: []string{"*"}})}
	for _, id := range []string{"a\r\nX-Injected: yes", "a\nX-Injected: yes", "12345678\x00", "1234567\x7f", "1234567\r", "\r1234567", "naïve---\x01"} {
		for _, features := range [][]dunlin.Feature{{middleware.RequestID("X-Request-ID")}, append([]dunlin.Feature{middleware.RequestID("X-Request-ID")}, others...)} {
			app := dunlin.New(quiet)
			app.Install(features...)
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				ext.SetID(r, id)
				return dunlin.Text("hello")
			})
			status, head := piped(t, app, httptest.NewRequest("GET", "/", nil), time.Now())()
			if status != 500 || strings.Contains(string(head), "Injected") || strings.Contains(string(head), "X-Request-Id") {
				t.Errorf("%q: %d\n%s", id, status, head)
			}
		}
	}
}
