package interop_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
)

func TestPprof(t *testing.T) {
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		mux := http.NewServeMux()
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		app.Mount("/debug/pprof", mux)
	}, func(t *testing.T, url string) {
		for path, want := range map[string]string{
			"/debug/pprof/":                    "full goroutine stack dump",
			"/debug/pprof/goroutine?debug=1":   "goroutine profile:",
			"/debug/pprof/cmdline":             "test",
			"/debug/pprof/symbol?0x1":          "num_symbols: 1",
			"/debug/pprof/trace?seconds=0.001": "go 1.",
		} {
			if resp, got := ask(t, "GET", url+path, ""); resp.StatusCode != 200 || !strings.Contains(got, want) {
				t.Errorf("%s: %d, lacks %q: %.200q", path, resp.StatusCode, want, got)
			}
		}
		_, got := ask(t, "GET", url+"/debug/pprof/heap", "", "Accept-Encoding", "identity")
		gz, err := gzip.NewReader(strings.NewReader(got))
		if err != nil {
			t.Fatal(err)
		}
		if profile, err := io.ReadAll(gz); err != nil || len(profile) == 0 {
			t.Errorf("the heap profile: got %d bytes, %v", len(profile), err)
		}
	})
}

func TestFileServer(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	files := fstest.MapFS{
		"index.html": {Data: []byte("<p>index</p>"), ModTime: modified},
		"a.css":      {Data: []byte("a { b: c }"), ModTime: modified},
		"big.bin":    {Data: big, ModTime: modified},
		"dir/b.txt":  {Data: []byte("b"), ModTime: modified},
	}
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.Mount("/files", http.StripPrefix("/files", http.FileServerFS(files)))
	}, func(t *testing.T, url string) {
		for _, c := range []struct {
			path    string
			headers []string
			status  int
			typ     string
			body    string
		}{
			{"/files/", nil, 200, "text/html; charset=utf-8", "<p>index</p>"},
			{"/files/a.css", nil, 200, "text/css; charset=utf-8", "a { b: c }"},
			{"/files/big.bin", nil, 200, "application/octet-stream", string(big)},
			{"/files/big.bin", []string{"Range", "bytes=16-19"}, 206, "application/octet-stream", "0123"},
			{"/files/big.bin", []string{"Range", "bytes=99999999-"}, 416, "text/plain; charset=utf-8", "invalid range: failed to overlap\n"},
			{"/files/a.css", []string{"If-Modified-Since", modified.Format(http.TimeFormat)}, 304, "", ""},
			{"/files/dir", nil, 301, "", ""},
			{"/files/none", nil, 404, "text/plain; charset=utf-8", "404 page not found\n"},
		} {
			resp, got := ask(t, "GET", url+c.path, "", c.headers...)
			if resp.StatusCode != c.status || resp.Header.Get("Content-Type") != c.typ || got != c.body {
				t.Errorf("%s %v: got %d %q, %d bytes %.60q", c.path, c.headers, resp.StatusCode, resp.Header.Get("Content-Type"), len(got), got)
			}
		}
		resp, _ := ask(t, "GET", url+"/files/big.bin", "", "Range", "bytes=0-1,4-5")
		if resp.StatusCode != 206 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/byteranges") {
			t.Errorf("two ranges: got %d %v", resp.StatusCode, resp.Header)
		}
		resp, _ = ask(t, "HEAD", url+"/files/big.bin", "")
		if resp.ContentLength != int64(len(big)) {
			t.Errorf("HEAD: length %d", resp.ContentLength)
		}
	})
}

// After http.TimeoutHandler has answered, its handler still reads and writes.
func TestTimeoutHandler(t *testing.T) {
	late, answered := make(chan error, 1), make(chan struct{}, 1)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		<-answered
		if _, err := io.ReadAll(r.Body); err == nil {
			late <- errors.New("the body of a request that is over could be read")
			return
		}
		if _, err := io.WriteString(w, "late"); !errors.Is(err, http.ErrHandlerTimeout) {
			late <- fmt.Errorf("a late write failed with %v", err)
			return
		}
		late <- nil
	})
	quick := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.Copy(w, r.Body)
	})
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.Mount("/slow", http.TimeoutHandler(slow, time.Millisecond, "out of time"))
		app.Mount("/quick", http.TimeoutHandler(quick, patience, "out of time"))
	}, func(t *testing.T, url string) {
		resp, got := ask(t, "POST", url+"/slow", "content")
		if resp.StatusCode != 503 || got != "out of time" {
			t.Errorf("slow: got %d %q", resp.StatusCode, got)
		}
		answered <- struct{}{}
		for range 10 {
			if resp, got := ask(t, "POST", url+"/quick", "content"); resp.StatusCode != 202 || got != "content" {
				t.Errorf("quick: got %d %q", resp.StatusCode, got)
			}
		}
		if err := await(t, "the end of the late handler", late); err != nil {
			t.Error(err)
		}
	})
}

func TestMaxBytesHandler(t *testing.T) {
	read := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, fmt.Sprint("more than ", over.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		fmt.Fprint(w, len(b))
	})
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.Mount("/std", http.MaxBytesHandler(read, 100_000))
		act := app.Group("/action")
		act.UseStd(func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, 100_000) })
		act.Post("", func(r *dunlin.Request) dunlin.Response {
			b, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(b)))
		})
	}, func(t *testing.T, url string) {
		for _, path := range []string{"/std", "/action"} {
			if resp, got := ask(t, "POST", url+path, strings.Repeat("x", 100_000)); resp.StatusCode != 200 || got != "100000" {
				t.Errorf("%s at the limit: got %d %q", path, resp.StatusCode, got)
			}
			resp, got := ask(t, "POST", url+path, strings.Repeat("x", 100_001))
			if resp.StatusCode != 413 || !strings.Contains(got, "100000") {
				t.Errorf("%s over the limit: got %d %q", path, resp.StatusCode, got)
			}
		}
	})
}
