package middleware_test

import (
	"crypto/tls"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

const year = 365 * 24 * time.Hour

func TestSecureHeaders(t *testing.T) {
	config := middleware.SecureHeadersConfig{HSTS: year, HSTSSubdomains: true, ContentSecurityPolicy: "default-src 'self'", OpenerPolicy: "-"}
	want := map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "SAMEORIGIN", // set by the action
		"Referrer-Policy":              "strict-origin-when-cross-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy":      "default-src 'self'",
		"Cross-Origin-Opener-Policy":   "",
		"Permissions-Policy":           "",
	}
	for name, act := range map[string]dunlin.Action{
		"a value":         func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").Header("X-Frame-Options", "SAMEORIGIN") },
		"a block":         func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").With(sameOrigin) },
		"a JSON document": func(*dunlin.Request) dunlin.Response { return dunlin.JSON(1).With(sameOrigin) },
	} {
		for _, app := range []*dunlin.App{
			installed(act, middleware.SecureHeaders(config)),
			withFeatures(act, middleware.SecureHeaders(config)),
			installed(act, middleware.SecureHeaders(middleware.SecureHeadersConfig{}), middleware.SecureHeaders(config)),
		} {
			for _, secure := range []bool{false, true} {
				req := httptest.NewRequest("GET", "/items/7", nil)
				hsts := ""
				if secure {
					req.TLS, hsts = new(tls.ConnectionState), "max-age=31536000; includeSubDomains"
				}
				w := httptest.NewRecorder()
				app.ServeHTTP(w, req)
				if got := w.Header().Get("Strict-Transport-Security"); got != hsts {
					t.Errorf("%s, TLS %v: got HSTS %q, want %q", name, secure, got, hsts)
				}
				for header, value := range want {
					if got := w.Header()[header]; value == "" && len(got) > 0 && header != "Cross-Origin-Opener-Policy" || value != "" && (len(got) != 1 || got[0] != value) {
						t.Errorf("%s: got %s %q, want %q", name, header, got, value)
					}
				}
			}
		}
	}
}

var sameOrigin = dunlin.NewHeaderBlock("X-Frame-Options", "SAMEORIGIN")

func TestSecureHeadersOnErrors(t *testing.T) {
	app := installed(func(*dunlin.Request) dunlin.Response { return dunlin.Response{} }, middleware.SecureHeaders(middleware.SecureHeadersConfig{}))
	w := send(app, "GET")
	if w.Code != 500 || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/nowhere", nil))
	if w.Code != 404 || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

func TestSecureHeadersRefuseMisconfiguration(t *testing.T) {
	for name, c := range map[string]middleware.SecureHeadersConfig{
		"preload, one day":           {HSTS: 24 * time.Hour, HSTSSubdomains: true, HSTSPreload: true},
		"preload without subdomains": {HSTS: year, HSTSPreload: true},
		"subdomains alone":           {HSTSSubdomains: true},
		"fraction of a second":       {HSTS: time.Second / 2},
		"ALLOW-FROM":                 {FrameOptions: "ALLOW-FROM https://example.com"},
		"line break in a policy":     {ContentSecurityPolicy: "default-src\n'self'"},
	} {
		mustPanic(t, name, func() { middleware.SecureHeaders(c) })
	}
}

func ExampleSecureHeaders() {
	app := dunlin.New(dunlin.Config{})
	app.Install(middleware.SecureHeaders(middleware.SecureHeadersConfig{
		HSTS:                  365 * 24 * time.Hour,
		ContentSecurityPolicy: "default-src 'self'",
	}))
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/nowhere", nil))
	fmt.Println(w.Code, w.Header().Get("X-Content-Type-Options"), w.Header().Get("X-Frame-Options"))
	fmt.Println(w.Header().Get("Content-Security-Policy"))
	// Output:
	// 404 nosniff DENY
	// default-src 'self'
}

func ExampleSecureHeaders_group() {
	app := dunlin.New(dunlin.Config{})
	embed := app.Group("/embed")
	embed.Install(middleware.SecureHeaders(middleware.SecureHeadersConfig{FrameOptions: "SAMEORIGIN"}))
	embed.Get("/map", func(*dunlin.Request) dunlin.Response { return dunlin.HTML("a map") })
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/embed/map", nil))
	fmt.Println(w.Header().Get("X-Frame-Options"))
	// Output: SAMEORIGIN
}
