package openapi_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

func fetch(app http.Handler, path, tag string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func TestServe(t *testing.T) {
	app := quiet()
	library(app)
	openapi.Serve(app.Group("/api"), "/docs", openapi.Config{Title: "T", Servers: []openapi.Server{{URL: "https://example.com/v1"}, {URL: "/relative"}}})
	for path, kind := range map[string]string{
		"/api/docs": "text/html; charset=utf-8", "/api/docs/page.css": "text/css; charset=utf-8", "/api/docs/page.js": "text/javascript; charset=utf-8",
		"/api/docs/openapi.json": "application/json", "/api/docs/openapi-3.1.json": "application/json", "/api/docs/openapi-3.2.json": "application/json",
	} {
		w := fetch(app, path, "")
		if w.Code != 200 || w.Header().Get("Content-Type") != kind {
			t.Errorf("%s: got %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' https://example.com; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
		if got := w.Header().Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s: policy %s", path, got)
		}
		if w := fetch(app, path, w.Header().Get("ETag")); w.Code != 304 || w.Body.Len() > 0 {
			t.Errorf("%s with If-None-Match: got %d", path, w.Code)
		}
	}
	if w := fetch(app, "/api/docs/openapi-3.2.json", ""); !strings.Contains(w.Body.String(), `"openapi": "3.2.0"`) || !strings.Contains(w.Body.String(), "itemSchema") {
		t.Errorf("3.2: got %.200s", w.Body)
	}
	before := fetch(app, "/api/docs/openapi.json", "")
	typed.Get(app, "/late", func(*dunlin.Request, struct{}) (typed.None, error) { return typed.None{}, nil })
	if after := fetch(app, "/api/docs/openapi.json", before.Header().Get("ETag")); after.Code != 200 || !strings.Contains(after.Body.String(), `"/late"`) {
		t.Error("an operation that was registered later is not in the document")
	}
}

// The page refers to no other host and complies with its own Content-Security-Policy.
func TestPageUsesNoOtherHosts(t *testing.T) {
	app := quiet()
	openapi.Serve(app, "/docs", openapi.Config{})
	foreign := regexp.MustCompile(`https?://[a-z0-9.-]+`)
	for _, path := range []string{"/docs", "/docs/page.css", "/docs/page.js"} {
		body := fetch(app, path, "").Body.String()
		for _, host := range foreign.FindAllString(body, -1) {
			if host != "https://example.com" { // in sample values
				t.Errorf("%s: got the host %s", path, host)
			}
		}
		for _, bad := range []string{"innerHTML", "eval(", "<script>", " style=", "onclick=\"", "@import", "document.write"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: got %s", path, bad)
			}
		}
	}
}
