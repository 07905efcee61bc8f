package middleware_test

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/middleware"
)

// get requests a path over a new connection and does not decode the body.
func get(t *testing.T, method, addr, path string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// pages registers an action for each kind of body that is produced while it is sent.
func pages(app *dunlin.App) (big string) {
	big = strings.Repeat("<p>hello, world!</p>\n", 5000)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	files := fstest.MapFS{"big.html": {Data: []byte(big), ModTime: at}, "small.html": {Data: []byte(long), ModTime: at}, "tiny.html": {Data: []byte("x"), ModTime: at}}
	write := func(text string) dunlin.Action {
		return func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/html", func(w io.Writer) error {
				for piece := range strings.Lines(text) {
					if _, err := io.WriteString(w, piece); err != nil {
						return err
					}
				}
				return nil
			}).Header("ETag", `"1"`)
		}
	}
	app.Get("/stream", write(big))
	app.Get("/shortstream", write(long))
	app.Get("/files/{name}", dunlin.Files(files))
	handler := func(text string, flush bool) dunlin.Action {
		return dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for piece := range strings.Lines(text) {
				_, _ = io.WriteString(w, piece)
			}
			if flush {
				_ = http.NewResponseController(w).Flush()
			}
		}))
	}
	app.Get("/handler", handler(big, false))
	app.Get("/flushing", handler(long, true))
	app.Get("/seq", func(*dunlin.Request) dunlin.Response {
		return dunlin.JSONSeq(func(yield func(string) bool) {
			for range 20_000 {
				if !yield("hello, world") {
					return
				}
			}
		})
	})
	app.Get("/image", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("image/png", func(w io.Writer) error { _, err := io.WriteString(w, big); return err })
	})
	app.Get("/encoded", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/html", func(w io.Writer) error { _, err := io.WriteString(w, big); return err }).Header("Content-Encoding", "br")
	})
	app.Get("/asitis", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/html", func(w io.Writer) error { _, err := io.WriteString(w, big); return err }).Header("Cache-Control", "no-transform")
	})
	return big
}

func TestCompressStreams(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Compress(middleware.CompressConfig{}))
		pages(app)
		addr := serve()
		for path, packed := range map[string]bool{
			"/stream": true, "/shortstream": true, "/files/big.html": true, "/files/small.html": true, "/handler": true, "/flushing": true, "/seq": true,
			"/image": false, "/encoded": false, "/asitis": false, "/files/tiny.html": false, "/files/none": false,
		} {
			plain := get(t, "GET", addr, path)
			want, err := io.ReadAll(plain.Body)
			if err != nil {
				t.Fatal(path, err)
			}
			resp := get(t, "GET", addr, path, "Accept-Encoding", "gzip")
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(path, err)
			}
			if got := resp.Header.Get("Content-Encoding") == "gzip"; got != packed {
				t.Errorf("%s: got compressed %v, want %v: %v", path, got, packed, resp.Header)
				continue
			}
			head := get(t, "HEAD", addr, path, "Accept-Encoding", "gzip")
			if h := head.Header; h.Get("Content-Encoding") != resp.Header.Get("Content-Encoding") || h.Get("ETag") != resp.Header.Get("ETag") || h.Get("Vary") != resp.Header.Get("Vary") {
				t.Errorf("%s: got headers %v for GET and %v for HEAD", path, resp.Header, h)
			}
			if !packed {
				if string(body) != string(want) {
					t.Errorf("%s: got %d bytes, want %d", path, len(body), len(want))
				}
				continue
			}
			if got := gunzip(t, body); got != string(want) || len(body) > len(want)/4 {
				t.Errorf("%s: got %d bytes were compressed to %d and decompressed to %d", path, len(want), len(body), len(got))
			}
			if resp.Header.Get("Vary") != "Accept-Encoding" || plain.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: got Vary %q, and %q for the plain response", path, resp.Header.Get("Vary"), plain.Header.Get("Vary"))
			}
			if tag := plain.Header.Get("ETag"); tag != "" && resp.Header.Get("ETag") != "W/"+strings.TrimPrefix(tag, "W/") {
				t.Errorf("%s: got ETag %s, and %s for the plain response", path, resp.Header.Get("ETag"), tag)
			}
			if length := head.Header.Get("Content-Length"); length != "" && head.ContentLength != int64(len(body)) {
				t.Errorf("%s: got Content-Length %s for HEAD and a body of %d bytes for GET", path, length, len(body))
			}
		}
	})
}

// A client that resumes a compressed download must not get a range of the uncompressed file.
func TestCompressRanges(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Compress(middleware.CompressConfig{}))
		big := pages(app)
		addr := serve()
		whole := get(t, "GET", addr, "/files/big.html", "Accept-Encoding", "gzip")
		tag := whole.Header.Get("ETag")
		if whole.Header.Get("Accept-Ranges") != "none" || !strings.HasPrefix(tag, "W/") {
			t.Errorf("encoded: got %v", whole.Header)
		}
		again := get(t, "GET", addr, "/files/big.html", "Accept-Encoding", "gzip", "Range", "bytes=100-199", "If-Range", tag)
		if again.StatusCode != 200 || again.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("If-Range with the tag of the encoded file: got %d %v", again.StatusCode, again.Header)
		}
		part := get(t, "GET", addr, "/files/big.html", "Accept-Encoding", "gzip", "Range", "bytes=100-199")
		body, _ := io.ReadAll(part.Body)
		if part.StatusCode != 206 || part.Header.Get("Content-Encoding") != "" || string(body) != big[100:200] || part.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Range: got %d %v %q", part.StatusCode, part.Header, body)
		}
		same := get(t, "GET", addr, "/files/big.html", "Accept-Encoding", "gzip", "If-None-Match", tag)
		if same.StatusCode != 304 || same.Header.Get("ETag") != tag || same.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("If-None-Match: got %d %v, want 304 with %s and Vary", same.StatusCode, same.Header, tag)
		}
		same = get(t, "GET", addr, "/files/big.html", "If-None-Match", strings.TrimPrefix(tag, "W/"))
		if same.StatusCode != 304 || same.Header.Get("ETag") != strings.TrimPrefix(tag, "W/") || same.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("If-None-Match with the tag of the plain file: got %d %v", same.StatusCode, same.Header)
		}
	})
}

// A coding without streaming encodes small bodies entirely, and HEAD cannot know the encoded length. Its Content-Length must
// not differ from that of GET.
func TestCompressHeadOfSmallBody(t *testing.T) {
	whole := &middleware.Coding{Name: "br", Append: func(dst, body []byte) []byte { return append(dst, body[:len(body)/2]...) }}
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Compress(middleware.CompressConfig{Codings: []*middleware.Coding{whole}}))
		app.Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, long)
		})))
		files := fstest.MapFS{"small.txt": {Data: []byte(long)}}
		app.Get("/file", func(*dunlin.Request) dunlin.Response { return dunlin.FS(files, "small.txt") })
		addr := serve()
		for _, path := range []string{"/std", "/file"} {
			for _, accept := range []string{"br", "identity"} {
				get, head := get(t, "GET", addr, path, "Accept-Encoding", accept), get(t, "HEAD", addr, path, "Accept-Encoding", accept)
				length := head.Header.Get("Content-Length")
				if want := get.Header.Get("Content-Length"); length != "" && length != want || accept == "identity" && length == "" {
					t.Errorf("%s, %s: got Content-Length %q for GET and %q for HEAD", path, accept, want, length)
				}
				if v := head.Header.Get("Vary"); v != "Accept-Encoding" {
					t.Errorf("%s, %s: HEAD: got Vary %q", path, accept, v)
				}
			}
		}
	})
}

// Flushed data reaches the client while the stream continues.
func TestCompressFlushes(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Compress(middleware.CompressConfig{}))
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
		addr := serve()
		resp := get(t, "GET", addr, "/events", "Accept-Encoding", "gzip")
		if resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
			t.Fatal("unexpected response header:", resp.Header)
		}
		var lines *bufio.Reader
		for i, data := range []string{"small", strings.Repeat("large ", 1000), "small again", strings.Repeat("large again ", 1000)} {
			next <- data
			if i == 0 {
				z, err := gzip.NewReader(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				lines = bufio.NewReader(z)
			}
			if line, err := lines.ReadString('\n'); err != nil || line != "data: "+data+"\n" {
				t.Fatalf("event %d: got %.40q, error %v", i, line, err)
			}
			if line, err := lines.ReadString('\n'); err != nil || line != "\n" {
				t.Fatalf("event %d: end of event: got %q, error %v", i, line, err)
			}
		}
		close(next)
		if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
			t.Errorf("after the last event: got %q, error %v", rest, err)
		}
	})
}

// At most Streams streams use a compressor. Other streams use the same coding without compression. A failed stream releases its
// compressor.
func TestCompressLimitsStreams(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Use(middleware.Compress(middleware.CompressConfig{Streams: 1}))
		has, release := make(chan bool), make(chan bool)
		big := pages(app)
		app.Get("/holding", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/html", func(w io.Writer) error {
				if err := dunlin.Flush(w); err != nil {
					return err
				}
				_, err := io.WriteString(w, big)
				has <- true
				<-release
				return err
			})
		})
		app.Get("/failing", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/html", func(w io.Writer) error {
				if _, err := io.WriteString(w, big); err != nil {
					return err
				}
				return errors.New("no")
			})
		})
		addr := serve()
		ask := func() int {
			t.Helper()
			resp := get(t, "GET", addr, "/stream", "Accept-Encoding", "gzip")
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || gunzip(t, body) != big {
				t.Errorf("got error %v, header %v, %d bytes", err, resp.Header, len(body))
			}
			return len(body)
		}
		holding := get(t, "GET", addr, "/holding", "Accept-Encoding", "gzip")
		<-has
		if n := ask(); n < len(big) {
			t.Errorf("while the only compressor is in use: got %d bytes were sent as %d", len(big), n)
		}
		close(release)
		if body, err := io.ReadAll(holding.Body); err != nil || gunzip(t, body) != big {
			t.Errorf("the stream with the compressor: %v", err)
		}
		if resp, err := http.Get("http://" + addr + "/failing"); err == nil { // this client requests gzip
			defer resp.Body.Close()
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Error("a failed stream ended like a complete one")
			}
		}
		if n := ask(); n > len(big)/4 {
			t.Errorf("after the compressor is released: got %d bytes were sent as %d", len(big), n)
		}
	})
}

// Two encoders run in the order of their registration, like nested middleware.
func TestEncodeLaterTwice(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		lines := func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				return ext.EncodeLater(next(r), func(head dunlin.Response, _ int64) (dunlin.Response, func(io.Writer) ext.BodyEncoder) {
					if head.Len() >= 0 {
						return head.WithBody([]byte(strings.ToUpper(string(head.Body())))), nil
					}
					return head, func(w io.Writer) ext.BodyEncoder { return upper{w} }
				})
			}
		}
		app.Use(middleware.Compress(middleware.CompressConfig{}), lines)
		big := pages(app)
		addr := serve()
		for path, want := range map[string]string{"/stream": big, "/shortstream": long, "/files/big.html": big, "/handler": big} {
			resp := get(t, "GET", addr, path, "Accept-Encoding", "gzip")
			body, err := io.ReadAll(resp.Body)
			if err != nil || gunzip(t, body) != strings.ToUpper(want) {
				t.Errorf("%s: got error %v, header %v, %d bytes", path, err, resp.Header, len(body))
			}
		}
	})
}

// upper is an encoder that converts text to upper case.
type upper struct{ w io.Writer }

func (u upper) Write(p []byte) (int, error) {
	_, err := io.WriteString(u.w, strings.ToUpper(string(p)))
	return len(p), err
}
func (u upper) Flush() error { return nil }
func (u upper) Close() error { return nil }
