package compress_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/compress"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
)

var long = strings.Repeat("<p>hello, world!</p>\n", 5000)

// open returns a reader that decodes a coding by the library itself.
func open(t *testing.T, coding string, src io.Reader) io.Reader {
	t.Helper()
	var r io.Reader
	var err error
	switch coding {
	case "":
		r = src
	case "zstd":
		r, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1))
	case "br":
		r = brotli.NewReader(src)
	case "gzip":
		r, err = gzip.NewReader(src)
	default:
		t.Fatalf("unknown coding %q", coding)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// onEngines runs f on each available engine.
func onEngines(t *testing.T, f func(t *testing.T, app *dunlin.App, serve func() (addr string))) {
	t.Helper()
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler), Limits: dunlin.Limits{MaxBody: 128 << 10}}, func(t *testing.T, app *dunlin.App) {
		f(t, app, func() string {
			t.Helper()
			return dunlintest.Serve(t, app)
		})
	})
}

func do(t *testing.T, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func stream(text string) dunlin.Action {
	return func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/html", func(w io.Writer) error {
			for piece := range strings.Lines(text) {
				if _, err := io.WriteString(w, piece); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func TestCodings(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Compress(middleware.CompressConfig{Codings: compress.Codings()}))
		app.Get("/whole", func(*dunlin.Request) dunlin.Response { return dunlin.HTML(long) })
		app.Get("/stream", stream(long))
		addr := serve()
		for _, c := range []struct{ accept, whole, stream string }{
			{"gzip, deflate, br, zstd", "zstd", "zstd"},
			{"gzip, deflate, br", "br", "gzip"},
			{"gzip", "gzip", "gzip"},
			{"br", "br", ""},
			{"*", "zstd", "zstd"},
			{"zstd;q=0.5, br;q=0.8, gzip;q=0.6", "br", "gzip"},
			{"zstd;q=0, *", "br", "gzip"},
			{"identity", "", ""},
			{"identity;q=0.9, zstd;q=0.5", "", ""},
			{"", "", ""},
		} {
			for path, want := range map[string]string{"/whole": c.whole, "/stream": c.stream} {
				resp := do(t, "GET", "http://"+addr+path, "", "Accept-Encoding", c.accept)
				packed, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				coding := resp.Header.Get("Content-Encoding")
				if coding != want || resp.Header.Get("Vary") != "Accept-Encoding" {
					t.Errorf("%s, %q: got %v, want the coding %q", path, c.accept, resp.Header, want)
				}
				body, err := io.ReadAll(open(t, coding, bytes.NewReader(packed)))
				if err != nil || string(body) != long || coding != "" && len(packed) > len(long)/20 {
					t.Errorf("%s, %q: got %d bytes became %d, and %d again; %v", path, c.accept, len(long), len(packed), len(body), err)
				}
			}
		}
	})
}

// Flushed data can be decoded while the stream continues.
func TestFlushes(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Compress(middleware.CompressConfig{Codings: compress.Codings()}))
		next := make(chan string)
		app.Get("/events", func(*dunlin.Request) dunlin.Response {
			return dunlin.SSE(func(e *dunlin.Events) error {
				for data := range next {
					if err := e.Send(dunlin.Event{Data: data}); err != nil {
						return err
					}
				}
				return nil
			})
		})
		resp := do(t, "GET", "http://"+serve()+"/events", "", "Accept-Encoding", "zstd")
		if resp.Header.Get("Content-Encoding") != "zstd" {
			t.Fatal(resp.Header)
		}
		lines := bufio.NewReader(open(t, "zstd", resp.Body))
		for _, data := range []string{"small", strings.Repeat("large ", 1000), "small again", strings.Repeat("huge ", 40_000)} {
			next <- data
			if line, err := lines.ReadString('\n'); err != nil || line != "data: "+data+"\n" {
				t.Fatalf("%.40q: got %.40q, %v", data, line, err)
			}
			if line, err := lines.ReadString('\n'); err != nil || line != "\n" {
				t.Fatalf("end of an event: got %q, %v", line, err)
			}
		}
		close(next)
		if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
			t.Errorf("after the last event: got %q, %v", rest, err)
		}
	})
}

// Data that is written, flushed or sent plain, in pieces of any size, is decoded unchanged.
func TestStreamCoders(t *testing.T) {
	noise := make([]byte, 200_000)
	_, _ = rand.Read(noise) // never fails
	source := long + string(noise)
	for _, coding := range compress.Codings() {
		if coding.Begin == nil {
			continue
		}
		for seed := range 16 {
			var b bytes.Buffer
			s, want := coding.Begin(&b), 0
			for step := range seed {
				n := (seed*7919 + step*104729) % 90_000
				n = min(n, len(source)-want)
				piece := []byte(source[want : want+n])
				want += n
				var err error
				switch (seed + step) % 3 {
				case 0:
					_, err = s.Write(piece)
				case 1:
					err = s.Plain(piece)
				default:
					if _, err = s.Write(piece); err == nil {
						err = s.Flush()
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(open(t, coding.Name, &b))
			if err != nil || string(got) != source[:want] {
				t.Fatalf("%s, %d: got %d bytes, want %d; %v", coding.Name, seed, len(got), want, err)
			}
		}
	}
}

func encode(t *testing.T, name, body string) string {
	t.Helper()
	for _, c := range compress.Codings() {
		if c.Name == name {
			return string(c.Append(nil, []byte(body)))
		}
	}
	t.Fatal(name)
	return ""
}

func TestDecompress(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Decompress(middleware.DecompressConfig{Codings: compress.Codings()}))
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			b, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(b)))
		})
		url := "http://" + serve()
		for _, coding := range []string{"zstd", "br", "gzip"} {
			packed := encode(t, coding, long)
			for name, c := range map[string]struct {
				body   string
				status int
			}{
				"good":       {packed, 200},
				"a bomb":     {encode(t, coding, strings.Repeat("a", 1<<20)), 413},
				"cut short":  {packed[:len(packed)/2], 400},
				"not at all": {"hello, world", 400},
			} {
				resp := do(t, "POST", url, c.body, "Content-Encoding", coding)
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != c.status || c.status == 200 && string(body) != fmt.Sprint(len(long)) {
					t.Errorf("%s, %s: got %d %.200q, %v, want %d", coding, name, resp.StatusCode, body, err, c.status)
				}
			}
		}
		resp := do(t, "POST", url, "x", "Content-Encoding", "compress")
		if resp.StatusCode != 415 || resp.Header.Get("Accept-Encoding") != "zstd, br, gzip" {
			t.Errorf("unknown coding: got %d %v", resp.StatusCode, resp.Header)
		}
	})
}

func TestLevels(t *testing.T) {
	for name, f := range map[string]func(){
		"Zstd(0)": func() { compress.Zstd(0) }, "Zstd(23)": func() { compress.Zstd(23) }, "Gzip(0)": func() { compress.Gzip(0) },
		"Gzip(10)": func() { compress.Gzip(10) }, "Brotli(-1)": func() { compress.Brotli(-1) }, "Brotli(12)": func() { compress.Brotli(12) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: got no panic", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range append(compress.Codings(), middleware.Gzip(6)) {
		b.Run(c.Name, func(b *testing.B) {
			b.SetBytes(int64(len(long)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = c.Append(dst[:0], []byte(long))
			}
			b.ReportMetric(float64(len(dst))/float64(len(long)), "size/plain")
		})
	}
}

func ExampleCodings() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.Compress(middleware.CompressConfig{}))                            // gzip
	app.Use(middleware.Compress(middleware.CompressConfig{Codings: compress.Codings()})) // zstd, Brotli, gzip: module compress

	app.Use(middleware.Decompress(middleware.DecompressConfig{}))                            // gzip, deflate
	app.Use(middleware.Decompress(middleware.DecompressConfig{Codings: compress.Codings()})) // zstd and Brotli, too

	for _, c := range compress.Codings() {
		fmt.Println(c.Name)
	}
	// Output:
	// zstd
	// br
	// gzip
}

func Example() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.Compress(middleware.CompressConfig{Codings: compress.Codings()}))
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text(strings.Repeat("again and ", 1000)) })

	for _, accept := range []string{"gzip, deflate, br, zstd", "gzip, deflate, br", "gzip"} {
		req := httptest.NewRequest("GET", "/", nil)
		req.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		fmt.Println(w.Header().Get("Content-Encoding"), w.Body.Len() < 100)
	}
	// Output:
	// zstd true
	// br true
	// gzip true
}
