package middleware_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

func TestAllowedHosts(t *testing.T) {
	app := newApp(text("hello"), middleware.AllowedHosts("example.com", "*.example.org", "192.0.2.7", "[2001:db8::1]", "localhost"))
	for host, want := range map[string]int{
		"example.com":            200,
		"EXAMPLE.com":            200,
		"example.com:8080":       200,
		"example.com.":           200,
		"example.com.:443":       200,
		"a.example.org":          200,
		"a.b.example.org:1":      200,
		"192.0.2.7:80":           200,
		"[2001:db8::1]":          200,
		"[2001:db8::1]:443":      200,
		"localhost":              200,
		"www.example.com":        421,
		"example.org":            421,
		".example.org":           421,
		"evil-example.org":       421,
		"example.com.evil.net":   421,
		"example.com:80.evil":    421,
		"example.com:80/":        421,
		"example.com:":           200,
		"[example.com]":          421,
		"[example.com":           421,
		"example.com..":          421,
		"example.com:123456":     421,
		"example.com:65536":      421,
		"example.com:65535":      200,
		"evil.net":               421,
		"":                       421,
		":80":                    421,
		"2001:db8::1":            200,
		"evil.net/a.example.org": 421,
		"evil.net@example.com":   421,
		strings.Repeat("a", 60_000) + ".example.org.evil": 421,
	} {
		req := httptest.NewRequest("GET", "/items/7", nil)
		req.Host = host
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("Host %.60q: got %d, want %d", host, w.Code, want)
		}
	}
	for _, bad := range []string{"", "*", "*.", "https://example.com", "example.com:80", "example.*", "*.192.0.2.1", "a b"} {
		mustPanic(t, "AllowedHosts "+bad, func() { middleware.AllowedHosts(bad) })
	}
	mustPanic(t, "no hosts", func() { middleware.AllowedHosts() })
}

func TestContentTypes(t *testing.T) {
	app := newApp(text("taken"), middleware.ContentTypes("application/json", "*+json", "text/*"))
	for contentType, want := range map[string]int{
		"application/json":                     200,
		"Application/JSON; charset=UTF-8":      200,
		`application/json;charset="utf-8"`:     200,
		"application/problem+json":             200,
		"text/csv":                             200,
		"application/json; charset=iso-8859-1": 415,
		"application/x-www-form-urlencoded":    415,
		"text":                                 415,
		"+json":                                415,
		"application /json":                    415,
		"application/jsonx":                    415,
		"":                                     415,
		";":                                    415,
		"multipart/form-data; boundary=x":      415,
		"application/xml, application/json":    415,
		"x/" + strings.Repeat("y", 60_000) + "json": 415,
	} {
		req := httptest.NewRequest("POST", "/items/7", strings.NewReader("{}"))
		req.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if w.Code != want || want == 415 && w.Header().Get("Accept") != "application/json, application/*+json, text/*" {
			t.Errorf("Content-Type %.60q: got %d %v, want %d", contentType, w.Code, w.Header(), want)
		}
	}
	if w := send(app, "POST"); w.Code != 200 {
		t.Errorf("without a body: got %d", w.Code)
	}
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Post("/", text("taken"), middleware.ContentTypes("application/json"))
		addr := serve()
		for more, want := range map[string]int{"": 200, "content-type: text/xml\r\n": 415, "Content-Type: application/json; a=b\r\n": 415, "Content-Type:\r\n": 415} {
			const line = "Content-Type: application/json; a=b\r\n"
			for _, lines := range []string{line + more, more + line} {
				resp, body := exchangeRaw(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n"+lines+"\r\n{}")
				if resp.StatusCode != want {
					t.Errorf("with %q: got %d %s, want %d", lines, resp.StatusCode, body, want)
				}
			}
		}
	})
	for _, bad := range []string{"", "json", "application/", "a b/c", "*+", "application/json; charset=utf-8"} {
		mustPanic(t, "ContentTypes "+bad, func() { middleware.ContentTypes(bad) })
	}
	mustPanic(t, "no types", func() { middleware.ContentTypes() })
}

func ExampleAllowedHosts() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.AllowedHosts("example.com", "*.example.com", "localhost"))
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
	for _, host := range []string{"www.example.com", "evil.net"} {
		req := httptest.NewRequest("GET", "/", nil)
		req.Host = host
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		fmt.Println(host, w.Code)
	}
	// Output:
	// www.example.com 200
	// evil.net 421
}

func ExampleContentTypes() {
	app := dunlin.New(dunlin.Config{})
	app.Post("/users", func(*dunlin.Request) dunlin.Response { return dunlin.Created("/users/7") }, middleware.ContentTypes("application/json"))
	req := httptest.NewRequest("POST", "/users", strings.NewReader("<user/>"))
	req.Header.Set("Content-Type", "application/xml")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Code, w.Header().Get("Accept"))
	// Output: 415 application/json
}
