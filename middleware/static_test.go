package middleware_test

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

//go:embed doc.go
var embedded embed.FS

func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

var site = fstest.MapFS{
	"index.html":                   {Data: []byte("<h1>home</h1>")},
	"docs/index.html":              {Data: []byte("<h1>docs</h1>")},
	"app.4f3a09bc.js":              {Data: []byte("run()")},
	"app.4f3a09bc.js.gz":           {Data: zipped("run()")},
	"app.4f3a09bc.js.br":           {Data: []byte("brotli")},
	"index-BzR3x9Qw.css":           {Data: []byte("a{}")},
	"report-20240101.pdf":          {Data: []byte("%PDF-1.4")},
	"notes-v20240101.txt":          {Data: []byte("notes")},
	"data":                         {Data: []byte("\x89PNG\x0d\x0a\x1a\x0a")},
	".env":                         {Data: []byte("SECRET=1")},
	".git/config":                  {Data: []byte("secret")},
	".well-known/security.txt":     {Data: []byte("Contact: x")},
	"a b%.txt":                     {Data: []byte("odd")},
	"empty.txt":                    {Data: nil},
	"only.txt.gz":                  {Data: zipped("only")},
	"deadbeefdeadbeef.d41d8cd9.ts": {Data: []byte("x")},
}

func static(t *testing.T, c middleware.StaticConfig) *dunlin.App {
	t.Helper()
	if c.FS == nil {
		c.FS = site
	}
	act, err := middleware.Static(c)
	if err != nil {
		t.Fatal(err)
	}
	app := dunlin.New(quiet)
	app.Get("/{path...}", act)
	return app
}

func ask(app *dunlin.App, method, target string, headers ...string) *httptest.ResponseRecorder {
	return requestOf(app, method, target, nil, headers...)
}

// A directory with an index page redirects to its path with a slash, even with a Fallback for paths without a file.
func TestStaticDirectoryRedirects(t *testing.T) {
	app := dunlin.New(quiet)
	act, err := middleware.Static(middleware.StaticConfig{Fallback: "index.html", FS: fstest.MapFS{
		"index.html": {}, "docs/index.html": {}, "a:b c%/index.html": {}, "files/x": {}, ".git/index.html": {},
	}})
	if err != nil {
		t.Fatal(err)
	}
	app.Get("/site/{path...}", act)
	app.Rewrite("/old/{path...}", "/site/{path...}")
	for path, want := range map[string]string{
		"/site/docs":       "./docs/",
		"/site/docs?x=1":   "./docs/?x=1",
		"/site/a:b%20c%25": "./a:b%20c%25/",
		"/site/files":      "",
		"/site/.git":       "",
		"/old/docs":        "", // no redirect: the path was rewritten
	} {
		w := ask(app, "GET", path)
		if got := w.Header().Get("Location"); got != want || (w.Code == 308) != (want != "") {
			t.Errorf("%s: got %d with Location %q, want %q", path, w.Code, got, want)
		}
		if w := ask(app, "GET", path, "Sec-Fetch-Mode", "navigate"); w.Header().Get("Location") != want {
			t.Errorf("%s, navigation: got %d %v", path, w.Code, w.Header())
		}
	}
}

func TestStatic(t *testing.T) {
	app := static(t, middleware.StaticConfig{})
	const immutable = "public, max-age=31536000, immutable"
	for _, c := range []struct {
		path, accept             string
		status                   int
		body, kind, cache, coded string
	}{
		{"/", "", 200, "<h1>home</h1>", "text/html; charset=utf-8", "no-cache", ""},
		{"/index.html", "gzip", 200, "<h1>home</h1>", "text/html; charset=utf-8", "no-cache", ""},
		{"/docs/", "", 200, "<h1>docs</h1>", "text/html; charset=utf-8", "no-cache", ""},
		{"/app.4f3a09bc.js", "", 200, "run()", "text/javascript; charset=utf-8", immutable, ""},
		{"/app.4f3a09bc.js", "gzip, br", 200, "brotli", "text/javascript; charset=utf-8", immutable, "br"},
		{"/app.4f3a09bc.js", "gzip, br;q=0.5", 200, string(zipped("run()")), "text/javascript; charset=utf-8", immutable, "gzip"},
		{"/app.4f3a09bc.js", "gzip;q=0, br;q=0", 200, "run()", "text/javascript; charset=utf-8", immutable, ""},
		{"/app.4f3a09bc.js", "identity, gzip;q=0.5", 200, "run()", "text/javascript; charset=utf-8", immutable, ""},
		{"/app.4f3a09bc.js", "*", 200, "brotli", "text/javascript; charset=utf-8", immutable, "br"},
		{"/app.4f3a09bc.js", "br;q=NaN, gzip;q=2", 200, "run()", "text/javascript; charset=utf-8", immutable, ""},
		{"/index-BzR3x9Qw.css", "", 200, "a{}", "text/css; charset=utf-8", immutable, ""},
		{"/report-20240101.pdf", "", 200, "%PDF-1.4", "application/pdf", "no-cache", ""},
		{"/notes-v20240101.txt", "", 200, "notes", "text/plain; charset=utf-8", "no-cache", ""},
		{"/data", "", 200, "\x89PNG\x0d\x0a\x1a\x0a", "image/png", "no-cache", ""},
		{"/.well-known/security.txt", "", 200, "Contact: x", "text/plain; charset=utf-8", "no-cache", ""},
		{"/a%20b%25.txt", "", 200, "odd", "text/plain; charset=utf-8", "no-cache", ""},
		{"/empty.txt", "", 200, "", "text/plain; charset=utf-8", "no-cache", ""},
		{"/.env", "", 404, "", "", "", ""},
		{"/.git/config", "", 404, "", "", "", ""},
		{"/docs", "", 308, "", "", "", ""},
		{"/only.txt", "gzip", 404, "", "", "", ""},
		{"/nowhere", "", 404, "", "", "", ""},
		{"/..%2f..%2fetc/passwd", "", 404, "", "", "", ""},
		{"/docs%2findex.html%00", "", 404, "", "", "", ""},
		{"/docs%2Findex.html", "", 404, "", "", "", ""},
		{"/" + strings.Repeat("x", 10_000), "", 404, "", "", "", ""},
	} {
		headers := []string{"Accept-Encoding", c.accept}
		if c.accept == "" {
			headers = nil
		}
		w := ask(app, "GET", c.path, headers...)
		h := w.Header()
		if w.Code != c.status {
			t.Errorf("%.40s: got %d, want %d", c.path, w.Code, c.status)
			continue
		}
		if c.status != 200 {
			continue
		}
		if w.Body.String() != c.body || h.Get("Content-Type") != c.kind || h.Get("Cache-Control") != c.cache || h.Get("Content-Encoding") != c.coded {
			t.Errorf("%s with Accept-Encoding %q: got %q %v", c.path, c.accept, w.Body, h)
		}
		if packed := strings.HasPrefix(c.path, "/app."); (h.Get("Vary") == "Accept-Encoding") != packed {
			t.Errorf("%s: got Vary %q", c.path, h.Get("Vary"))
		}
		tag := h.Get("Etag")
		if len(tag) != 24 {
			t.Errorf("%s: got ETag %s", c.path, tag)
		}
		if again := ask(app, "GET", c.path, append(headers, "If-None-Match", tag)...); again.Code != 304 || again.Header().Get("Etag") != tag {
			t.Errorf("%s with If-None-Match: got %d %v", c.path, again.Code, again.Header())
		}
		head := ask(app, "HEAD", c.path, headers...)
		if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Etag") != tag {
			t.Errorf("HEAD %s: got %d %v", c.path, head.Code, head.Header())
		}
	}
	if w := ask(app, "GET", "/app.4f3a09bc.js", "Range", "bytes=1-2"); w.Code != 206 || w.Body.String() != "un" {
		t.Errorf("Range: got %d %q", w.Code, w.Body)
	}
}

func TestStaticFallback(t *testing.T) {
	app := static(t, middleware.StaticConfig{Fallback: "index.html", MaxAge: time.Minute})
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
	}{
		{"GET", "/users/7", []string{"Accept", "text/html,application/xhtml+xml;q=0.9"}, 200},
		{"GET", "/users/7", []string{"Sec-Fetch-Mode", "navigate", "Accept", "*/*"}, 200},
		{"HEAD", "/users/7", []string{"Accept", "text/html"}, 200},
		{"GET", "/missing.js", []string{"Sec-Fetch-Mode", "no-cors", "Accept", "text/html"}, 404},
		{"GET", "/api/users", []string{"Accept", "application/json"}, 404},
		{"GET", "/users/7", nil, 404},
	} {
		w := ask(app, c.method, c.path, c.headers...)
		if w.Code != c.status || w.Code == 200 && w.Header().Get("Cache-Control") != "public, max-age=60" {
			t.Errorf("%s %s %v: got %d %v, want %d", c.method, c.path, c.headers, w.Code, w.Header(), c.status)
		}
		if vary := strings.Join(w.Header().Values("Vary"), ", "); !strings.Contains(vary, "Accept, Sec-Fetch-Mode") {
			t.Errorf("%s %s %v: a cache would also send this response to other requests: got %v", c.method, c.path, c.headers, w.Header())
		}
	}
	if w := ask(app, "GET", "/docs/"); w.Code != 200 || w.Header().Get("Vary") != "" {
		t.Errorf("existing file: got %d %v", w.Code, w.Header())
	}
}

func TestStaticFileSystems(t *testing.T) {
	if w := ask(static(t, middleware.StaticConfig{FS: embedded}), "GET", "/doc.go"); w.Code != 200 || len(w.Header().Get("Etag")) != 24 {
		t.Errorf("embed.FS: got %d %v", w.Code, w.Header())
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a"), 0o600), os.Symlink(os.DevNull, filepath.Join(dir, "device"))); err != nil {
		t.Log(err) // some systems have no symbolic links
	}
	app := static(t, middleware.StaticConfig{FS: os.DirFS(dir), Immutable: regexp.MustCompile(`^a\.`), Hidden: true})
	if w := ask(app, "GET", "/a.txt"); w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("os.Root: got %d %v", w.Code, w.Header())
	}
	if w := ask(app, "GET", "/device"); w.Code != 404 {
		t.Errorf("device file: got %d", w.Code)
	}
	if _, err := middleware.Static(middleware.StaticConfig{FS: site, Fallback: "app.html"}); err == nil || !strings.Contains(err.Error(), "app.html") {
		t.Errorf("missing fallback: got error %v", err)
	}
	if _, err := middleware.Static(middleware.StaticConfig{FS: os.DirFS(filepath.Join(dir, "none"))}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: got error %v", err)
	}
	mustPanic(t, "nil FS", func() { _, _ = middleware.Static(middleware.StaticConfig{}) })
}

func ExampleStatic() {
	files := fstest.MapFS{
		"index.html":      {Data: []byte("<h1>home</h1>")},
		"app.4f3a09bc.js": {Data: []byte("run()")},
	}
	assets, err := middleware.Static(middleware.StaticConfig{FS: files, Fallback: "index.html"})
	if err != nil {
		fmt.Println(err)
		return
	}
	app := dunlin.New(dunlin.Config{})
	app.Get("/{path...}", assets)

	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/app.4f3a09bc.js", nil))
	fmt.Println(w.Code, w.Header().Get("Cache-Control"))
	// Output: 200 public, max-age=31536000, immutable
}

// A path with an escaped slash matches no file, for any pattern: a route that guards a directory does not treat it as a
// separator.
func TestStaticEscapedSlash(t *testing.T) {
	act, err := middleware.Static(middleware.StaticConfig{FS: fstest.MapFS{
		"private/a.txt": {Data: []byte("secret")}, "b%.txt": {Data: []byte("odd")}, "open/b%.txt": {Data: []byte("odd below")},
		"a%2Fb": {Data: []byte("odd name")}, "private%2Fa.txt": {Data: []byte("odd name, too")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	app := dunlin.New(quiet)
	app.Get("/of/{tenant}/{path...}", act)
	app.Get("/private/{path...}", func(*dunlin.Request) dunlin.Response { return dunlin.Text("guarded").Status(403) })
	app.Get("/{path...}", act)
	app.Get("/b%25.txt", act)
	app.Get("/as%2Fis/{tenant}/{path...}", act)
	app.Host("{tenant}.example.org").Get("/b%25.txt", act)
	app.Get("/last/{tenant}/{file}/raw", act)
	for path, want := range map[string]string{
		"/private/a.txt": "403 guarded", "/private%2Fa.txt": "404 ", "/private%2fa.txt": "404 ", "/of/x/private%2Fa.txt": "404 ",
		"/of/x%2Fy/private/a.txt": "200 secret", "/of/x/open/b%25.txt": "200 odd below", "/open/b%25.txt": "200 odd below",
		"/open%2Fb%25.txt": "404 ", "/b%25.txt": "200 odd",
		// As in http.FileServer, a percent sign in a file name is escaped in the URL: the name a%2Fb is requested as a%252Fb.
		"/a%2Fb": "404 ", "/a%252Fb": "200 odd name", "/private%252Fa.txt": "200 odd name, too", "/of/x%2Fy/a%252Fb": "200 odd name",
		"/of/x%252Fy/a%2Fb": "404 ", "/of/x%2Fy/a%2Fb": "404 ", "/of/x%2Fprivate/private%2Fa.txt": "404 ",
		"/last/x%2Fy/a%252Fb/raw": "200 odd name", "/last/x%2Fy/a%2Fb/raw": "404 ", "/last/x/b%25.txt/raw": "200 odd", "/last/x%2Fy%2Fz/b%25.txt/raw": "200 odd",
		"/as%2Fis/x/private/a.txt": "200 secret", "/as%2fis/x%2Fy/private/a.txt": "200 secret", "/as%2Fis/x/private%2Fa.txt": "404 ",
	} {
		w := ask(app, "GET", path)
		if got := fmt.Sprint(w.Code, " ", w.Body); got != want && (w.Code != 404 || want != "404 ") {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "http://shop.example.org/b%25.txt", nil))
	if w.Body.String() != "odd" {
		t.Errorf("host with a parameter: got %d %s", w.Code, w.Body)
	}
}
