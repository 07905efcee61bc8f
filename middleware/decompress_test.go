package middleware_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // writes to a bytes.Buffer do not fail
	_ = z.Close()
	return b.String()
}

func deflated(text string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// upload returns a request as text.
func upload(path, kind, coding, body string) string {
	head := "POST " + path + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Type: " + kind + "\r\n"
	if coding != "" {
		head += "Content-Encoding: " + coding + "\r\n"
	}
	return head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

// readers registers an action for each way to read a body. Each answers with the body it read.
func readers(app *dunlin.App) {
	app.Post("/bytes", func(r *dunlin.Request) dunlin.Response {
		b, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		seen := ""
		for name, value := range r.Headers() {
			if strings.HasPrefix(name, "Content-") {
				seen += " " + name + " " + value
			}
		}
		return dunlin.Text(fmt.Sprintf("%s %d%s%s%s", b, r.ContentLength(), seen, r.Header("content-encoding"), r.HeaderList("Content-Length")))
	})
	app.Post("/body", func(r *dunlin.Request) dunlin.Response {
		b, err := io.ReadAll(r.Body())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(string(b))
	})
	app.Post("/echo", func(r *dunlin.Request) dunlin.Response {
		b, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes("text/plain", b)
	})
	app.Post("/json", func(r *dunlin.Request) dunlin.Response {
		v, err := dunlin.Decode[struct{ Name string }](r)
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(v.Name)
	})
	app.Post("/form", func(r *dunlin.Request) dunlin.Response {
		v, err := r.FormValue("name")
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(v)
	})
	app.Post("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(b), " ", r.ContentLength, " ", r.Header["Content-Encoding"], err)
	})))
	behind := app.Group("/behind")
	behind.UseStd(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
	})
	behind.Post("", func(r *dunlin.Request) dunlin.Response {
		b, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(string(b))
	})
}

func TestDecompress(t *testing.T) {
	const limit = 64 << 10
	config := quiet
	config.Limits.MaxBody = limit
	full := strings.Repeat("a", limit)
	cut := gzipped("hello, world")
	onEnginesWith(t, config, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Decompress(middleware.DecompressConfig{}))
		readers(app)
		addr := serve()
		for name, c := range map[string]struct {
			request string
			status  int
			body    string // the body, or a part of it
		}{
			"bytes":                    {upload("/bytes", "text/plain", "gzip", gzipped("hello")), 200, "hello 5 Content-Type text/plain"},
			"body":                     {upload("/body", "text/plain", "gzip", gzipped("hello")), 200, "hello"},
			"passed on":                {upload("/echo", "text/plain", "gzip", gzipped(full[:50_000])), 200, full[:50_000]},
			"JSON":                     {upload("/json", "application/json", "gzip", gzipped(`{"Name":"hello"}`)), 200, "hello"},
			"form":                     {upload("/form", "application/x-www-form-urlencoded", "GZip", gzipped("name=hello")), 200, "hello"},
			"standard handler":         {upload("/std", "text/plain", "x-gzip", gzipped("hello")), 200, "hello 5 [] <nil>"},
			"behind others":            {upload("/behind", "text/plain", "gzip", gzipped("hello")), 200, "hello"},
			"deflate":                  {upload("/body", "text/plain", "deflate", deflated("hello")), 200, "hello"},
			"two codings":              {upload("/body", "text/plain", "deflate, gzip", gzipped(deflated("hello"))), 415, "more than one content coding"},
			"two lines":                {upload("/body", "text/plain", "deflate\r\nContent-Encoding: gzip", gzipped(deflated("hello"))), 415, "more than one content coding"},
			"identity and gzip":        {upload("/body", "text/plain", "identity, gzip, ", gzipped("hello")), 200, "hello"},
			"plain":                    {upload("/body", "text/plain", "", "hello"), 200, "hello"},
			"identity":                 {upload("/body", "text/plain", "identity", "hello"), 200, "hello"},
			"empty":                    {upload("/body", "text/plain", "gzip", ""), 200, ""},
			"empty body":               {upload("/bytes", "text/plain", "gzip", gzipped("")), 200, " 0 Content-Type text/plain"},
			"at the limit":             {upload("/body", "text/plain", "gzip", gzipped(full)), 200, full},
			"one byte above the limit": {upload("/body", "text/plain", "gzip", gzipped(full+"a")), 413, "larger than the limit"},
			"compression bomb":         {upload("/body", "text/plain", "gzip", gzipped(strings.Repeat("a", 2<<20))), 413, "larger than the limit"},
			"empty gzip members":       {upload("/body", "text/plain", "gzip", strings.Repeat(gzipped(""), 1000)), 200, ""},
			"encoded body too long":    {upload("/body", "text/plain", "gzip", full+"a"), 413, "larger than the limit"},
			"unknown":                  {upload("/body", "text/plain", "br", "hello"), 415, "is not supported"},
			"one of two unknown":       {upload("/body", "text/plain", "zstd, gzip", "hello"), 415, "is not supported"},
			"no gzip":                  {upload("/body", "text/plain", "gzip", "hello, world"), 400, "Content-Encoding"},
			"cut short":                {upload("/body", "text/plain", "gzip", cut[:len(cut)-3]), 400, "Content-Encoding"},
			"wrong checksum":           {upload("/body", "text/plain", "gzip", cut[:len(cut)-8]+"\x00\x00\x00\x00"+cut[len(cut)-4:]), 400, "Content-Encoding"},
			"data after gzip":          {upload("/body", "text/plain", "gzip", cut+"more"), 400, "Content-Encoding"},
			"data after deflate":       {upload("/body", "text/plain", "deflate", deflated("hello")+"more"), 400, "Content-Encoding"},
		} {
			resp, body := exchangeRaw(t, addr, c.request)
			if resp.StatusCode != c.status || c.status == 200 && body != c.body || !strings.Contains(body, c.body) {
				t.Errorf("%s: got %d %.200q, want %d %.200q", name, resp.StatusCode, body, c.status, c.body)
			}
			want := ""
			if c.status == 415 {
				want = "gzip, deflate"
			}
			if got := resp.Header.Get("Accept-Encoding"); got != want {
				t.Errorf("%s: got Accept-Encoding %q, want %q", name, got, want)
			}
		}
	})
}

// A decoded body is charged to the memory budget: a body that does not fit is refused.
func TestDecompressWithinBudget(t *testing.T) {
	config := quiet
	config.Limits.Memory = 128 << 20
	bomb := strings.Repeat(gzipped(strings.Repeat("a", 1<<20)), 32) // concatenated gzip members
	onEnginesWith(t, config, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Decompress(middleware.DecompressConfig{}))
		app.Group("").WithMaxBody(1<<40).Post("/body", text("read"))
		addr := serve()
		resp, body := exchangeRaw(t, addr, upload("/body", "text/plain", "gzip", bomb))
		if resp.StatusCode != 413 && resp.StatusCode != 503 {
			t.Errorf("got %d %.200q", resp.StatusCode, body)
		}
	})
}

// A decoder may need megabytes for a body of a few bytes. The number of concurrent decoders is therefore limited to that of the
// processors, and waiting requests are served in turn.
func TestConcurrentDecodersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := runtime.GOMAXPROCS(0)
		var open atomic.Int64
		release := make(chan struct{})
		slow := &middleware.Coding{Name: "slow", Open: func(src io.Reader) (io.Reader, error) {
			open.Add(1)
			<-release
			b, _ := io.ReadAll(src)
			if string(b) == "panic" {
				panic("the decoder panicked")
			}
			return struct {
				io.Reader
				io.Closer
			}{bytes.NewReader(b), closer(func() { open.Add(-1) })}, nil
		}}
		app := dunlin.New(quiet)
		app.Use(middleware.Decompress(middleware.DecompressConfig{Codings: []*middleware.Coding{slow}}))
		readers(app)
		post := func(ctx context.Context, body string, want int) {
			req := httptest.NewRequestWithContext(ctx, "POST", "/body", strings.NewReader(body))
			req.Header.Set("Content-Encoding", "slow")
			w := httptest.NewRecorder()
			app.ServeHTTP(w, req)
			if w.Code != want || want == 200 && w.Body.String() != body {
				t.Errorf("body %q: got %d %s, want %d", body, w.Code, w.Body, want)
			}
		}
		var wg sync.WaitGroup
		for range most {
			wg.Go(func() { post(t.Context(), "panic", 500) })
		}
		synctest.Wait()
		impatient, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		wg.Go(func() { post(impatient, "hello", 503) })
		for range 2 * most {
			wg.Go(func() { post(t.Context(), "hello", 200) })
		}
		<-impatient.Done()
		synctest.Wait()
		if n := open.Load(); n != int64(most) {
			t.Errorf("got %d concurrent decoders, want %d", n, most)
		}
		close(release)
		wg.Wait()
		if n := open.Load(); n != int64(most) { // the decoders that panicked are never closed
			t.Errorf("got %d open decoders at the end, want %d", n, most)
		}
	})
}

// A closer is a function as an io.Closer.
type closer func()

func (c closer) Close() error { c(); return nil }

func TestDecompressSettings(t *testing.T) {
	app := dunlin.New(quiet)
	app.Use(middleware.Decompress(middleware.DecompressConfig{MaxSize: 4}))
	readers(app)
	for body, want := range map[string]int{"four": 200, "fives": 413} {
		req := httptest.NewRequest("POST", "/body", strings.NewReader(gzipped(body)))
		req.Header.Set("Content-Encoding", "gzip")
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("body %q: got %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	mustPanic(t, "MaxSize -1", func() { middleware.Decompress(middleware.DecompressConfig{MaxSize: -1}) })
	mustPanic(t, "a coding without Open", func() {
		middleware.Decompress(middleware.DecompressConfig{Codings: []*middleware.Coding{{Name: "x"}}})
	})
}

func ExampleDecompress() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.Decompress(middleware.DecompressConfig{}))
	app.Post("/", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(string(body))
	})

	req := httptest.NewRequest("POST", "/", strings.NewReader(gzipped("hello")))
	req.Header.Set("Content-Encoding", "gzip")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Code, w.Body)
	// Output: 200 hello
}
