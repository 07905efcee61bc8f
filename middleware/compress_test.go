package middleware_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// long is a text that is worth compressing.
var long = strings.Repeat("hello, world! ", 200)

func gunzip(t *testing.T, packed []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestCompress(t *testing.T) {
	noise := make([]byte, 4096)
	_, _ = rand.Read(noise) // never fails
	bytesOf := func(mediaType string, b []byte) dunlin.Action {
		return func(*dunlin.Request) dunlin.Response { return dunlin.Bytes(mediaType, b) }
	}
	changed := func(change func(dunlin.Response) dunlin.Response) dunlin.Action {
		return func(*dunlin.Request) dunlin.Response { return change(dunlin.Text(long)) }
	}
	for name, test := range map[string]struct {
		act  dunlin.Action
		gzip bool
		vary string
	}{
		"text":               {text(long), true, "Accept-Encoding"},
		"json":               {func(*dunlin.Request) dunlin.Response { return dunlin.JSON(long) }, true, "Accept-Encoding"},
		"a suffix":           {bytesOf("Application/Problem+JSON; charset=utf-8", []byte(long)), true, "Accept-Encoding"},
		"an error status":    {changed(func(r dunlin.Response) dunlin.Response { return r.Status(404) }), true, "Accept-Encoding"},
		"own headers":        {changed(func(r dunlin.Response) dunlin.Response { return r.Header("Vary", "Accept") }), true, "Accept|Accept-Encoding"},
		"varies already":     {changed(func(r dunlin.Response) dunlin.Response { return r.Header("Vary", "Accept, accept-encoding") }), true, "Accept, accept-encoding"},
		"Vary: *":            {changed(func(r dunlin.Response) dunlin.Response { return r.Header("Vary", "*") }), true, "*"},
		"small":              {text("hello"), false, ""},
		"an image":           {bytesOf("image/png", []byte(long)), false, ""},
		"no media type":      {bytesOf("", []byte(long)), false, ""},
		"encoded already":    {changed(func(r dunlin.Response) dunlin.Response { return r.Header("Content-Encoding", "br") }), false, ""},
		"a part":             {changed(func(r dunlin.Response) dunlin.Response { return r.Status(206) }), false, "Accept-Encoding"},
		"partial image":      {func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("image/png", []byte(long)).Status(206) }, false, ""},
		"noise, not smaller": {bytesOf("text/plain", noise), false, "Accept-Encoding"},
		"a stream": {func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, long); return err })
		}, true, "Accept-Encoding"},
		"no-transform": {changed(func(r dunlin.Response) dunlin.Response { return r.Header("Cache-Control", "public, No-Transform") }), false, ""},
	} {
		plain := send(newApp(test.act), "GET")
		for _, accept := range []string{"gzip", "br"} {
			w := send(newApp(test.act, middleware.Compress(middleware.CompressConfig{})), "GET", "Accept-Encoding", accept)
			if got := strings.Join(w.Header().Values("Vary"), "|"); got != test.vary {
				t.Errorf("%s: %s: got Vary %q, want %q", name, accept, got, test.vary)
			}
			packed := w.Header().Get("Content-Encoding") == "gzip"
			if want := test.gzip && accept == "gzip"; packed != want {
				t.Errorf("%s: %s: got compressed %v, want %v", name, accept, packed, want)
				continue
			}
			body := w.Body.String()
			if packed {
				if w.Body.Len() >= plain.Body.Len() || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
					t.Errorf("%s: compressed %d bytes to %d, Content-Length %s", name, plain.Body.Len(), w.Body.Len(), w.Header().Get("Content-Length"))
				}
				body = gunzip(t, w.Body.Bytes())
			}
			if body != plain.Body.String() || w.Code != plain.Code || w.Header().Get("Content-Type") != plain.Header().Get("Content-Type") {
				t.Errorf("%s: %s: got status %d, type %q, %d bytes, want those of the plain response", name, accept, w.Code, w.Header().Get("Content-Type"), len(body))
			}
		}
	}
}

func TestCompressAcceptEncoding(t *testing.T) {
	app := newApp(text(long), middleware.Compress(middleware.CompressConfig{}))
	for accept, want := range map[string]bool{
		"gzip": true, "GZIP": true, "x-gzip": true, "br, gzip": true, "deflate;q=1,gzip ; q=0.5": true, "*": true,
		"gzip;q=0.001": true, "identity;q=0.5, gzip": true, "identity, gzip": true, "gzip;q=0, x-gzip": true,
		"identity;q=0, gzip": true, "identity;q=0": false, "identity;q=0, br": false,
		"": false, "br": false, "identity": false, "gzip;q=0": false, "gzip;q=0, *": false, "*;q=0": false,
		"identity, gzip;q=0.5": false, "gzip;q=often": false, "gzip;q=2": false, "gzip;q=NaN": false, "notgzip": false,
	} {
		w := send(app, "GET", "Accept-Encoding", accept)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: got compressed %v, want %v", accept, got, want)
		}
	}
}

func TestCompressHead(t *testing.T) {
	app := newApp(text(long), middleware.Compress(middleware.CompressConfig{}))
	get, head := send(app, "GET", "Accept-Encoding", "gzip"), send(app, "HEAD", "Accept-Encoding", "gzip")
	for _, name := range []string{"Content-Encoding", "Content-Length", "Vary"} {
		if g, h := get.Header().Get(name), head.Header().Get(name); g != h || g == "" {
			t.Errorf("%s: got %q for GET and %q for HEAD, want equal values", name, g, h)
		}
	}
}

func TestCompressWithETag(t *testing.T) {
	app := newApp(text(long), middleware.Compress(middleware.CompressConfig{}), middleware.ETag())
	plain := send(app, "GET").Header().Get("ETag")
	first := send(app, "GET", "Accept-Encoding", "gzip")
	tag := first.Header().Get("ETag")
	if first.Code != 200 || tag != "W/"+plain || plain == "" {
		t.Errorf("got ETag %s for the plain body and %s for the compressed one, want the weak form of the same tag", plain, tag)
	}
	again := send(app, "GET", "Accept-Encoding", "gzip", "If-None-Match", tag)
	if again.Code != 304 || again.Header().Get("ETag") != tag || again.Header().Get("Vary") != "Accept-Encoding" || again.Header().Get("Content-Encoding") != "" {
		t.Errorf("If-None-Match: got %d %v, want 304 with the same ETag and Vary", again.Code, again.Header())
	}
}

func TestCompressSettings(t *testing.T) {
	app := newApp(text(long), middleware.Compress(middleware.CompressConfig{MinSize: len(long) + 1}))
	if w := send(app, "GET", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Errorf("a body of %d bytes, fewer than MinSize, was compressed", len(long))
	}
	app = newApp(text(long), middleware.Compress(middleware.CompressConfig{MediaTypes: []string{"application/json"}}))
	if w := send(app, "GET", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a media type that is not in MediaTypes was compressed")
	}
	mustPanic(t, "Level 10", func() { middleware.Compress(middleware.CompressConfig{Level: 10}) })
	mustPanic(t, "Streams -1", func() { middleware.Compress(middleware.CompressConfig{Streams: -1}) })
	mustPanic(t, "a coding without Append", func() {
		middleware.Compress(middleware.CompressConfig{Codings: []*middleware.Coding{middleware.Deflate()}})
	})
	mustPanic(t, "MinSize -1", func() { middleware.Compress(middleware.CompressConfig{MinSize: -1}) })
}

func ExampleCompress() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.Compress(middleware.CompressConfig{MinSize: 512}))
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text(strings.Repeat("again and ", 100)) })

	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Header().Get("Content-Encoding"), w.Body.Len() < 100)
	// Output: gzip true
}
