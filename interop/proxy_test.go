package interop_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A backend is the upstream server of the proxy.
type backend struct {
	*httptest.Server
	next chan string   // the next piece of /stream; closing it ends the body
	gone chan struct{} // receives a value after the client of /hang has closed its connection
}

func newBackend(t *testing.T) *backend {
	b := &backend{next: make(chan string), gone: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Forwarded", r.Header.Get("X-Forwarded-For")+" "+r.Header.Get("X-Forwarded-Host"))
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s %s: ", r.Method, r.URL)
		_, _ = io.Copy(w, r.Body)
	})
	mux.HandleFunc("/api/hash", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		_, _ = fmt.Fprintf(w, "%d %x %v", n, h.Sum(nil), err)
	})
	mux.HandleFunc("/api/refuse", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too much", http.StatusRequestEntityTooLarge)
	})
	mux.HandleFunc("/api/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			piece, more := <-b.next
			if !more {
				w.Header().Set("X-Sum", "done")
				return
			}
			_, _ = io.WriteString(w, piece)
		}
	})
	mux.HandleFunc("/api/hang", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		b.gone <- struct{}{}
	})
	mux.HandleFunc("/api/cut", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b
}

func onProxies(t *testing.T, f func(t *testing.T, url string, b *backend)) {
	t.Helper()
	var b *backend
	onEngines(t, func(t *testing.T, app *dunlin.App) {
		b = newBackend(t)
		target, err := url.Parse(b.URL)
		if err != nil {
			t.Fatal(err)
		}
		app.Mount("/api", &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.SetXForwarded()
			},
			Transport: &http.Transport{DisableKeepAlives: true},
		})
	}, func(t *testing.T, url string) { f(t, url, b) })
}

func TestReverseProxy(t *testing.T) {
	onProxies(t, func(t *testing.T, url string, _ *backend) {
		resp, got := ask(t, "PUT", url+"/api/echo?a=b", "content")
		if resp.StatusCode != 201 || got != "PUT /api/echo?a=b: content" {
			t.Errorf("got %d %q", resp.StatusCode, got)
		}
		if want := "127.0.0.1 " + strings.TrimPrefix(url, "http://"); resp.Header.Get("X-Forwarded") != want {
			t.Errorf("forwarded %q, want %q", resp.Header.Get("X-Forwarded"), want)
		}
		if resp, got := ask(t, "HEAD", url+"/api/echo", ""); resp.StatusCode != 201 || got != "" {
			t.Errorf("HEAD: got %d %q", resp.StatusCode, got)
		}
	})
}

// Uploads of known length and chunked ones pass through without buffering. The upstream server may refuse them before they are
// complete.
func TestReverseProxyUpload(t *testing.T) {
	const size = 3 << 20
	body := strings.Repeat("0123456789abcdef", size/16)
	want := fmt.Sprintf("%d %x <nil>", size, sha256.Sum256([]byte(body)))
	onProxies(t, func(t *testing.T, url string, _ *backend) {
		if _, got := ask(t, "POST", url+"/api/hash", body); got != want {
			t.Errorf("of known length: got %q", got)
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/api/hash", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
			t.Errorf("chunked: got %q, %v", got, err)
		}
		// The client sees the refusal or a reset, which depends on its progress. The server must continue in both cases.
		for range 5 {
			if resp, err := http.Post(url+"/api/refuse", "text/plain", strings.NewReader(body)); err == nil {
				_ = resp.Body.Close()
				if resp.StatusCode != 413 && resp.StatusCode != 502 {
					t.Errorf("refused: got %d", resp.StatusCode)
				}
			}
		}
		if _, got := ask(t, "POST", url+"/api/hash", body); got != want {
			t.Errorf("after the refusals: got %q", got)
		}
	})
}

// Each piece reaches the client before the server makes the next one.
func TestReverseProxyStream(t *testing.T) {
	onProxies(t, func(t *testing.T, url string, b *backend) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", url+"/api/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for i := range 50 {
			piece := fmt.Sprintf("data: %d\n\n", i)
			b.next <- piece
			got := make([]byte, len(piece))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != piece {
				t.Fatalf("piece %d: got %q, %v", i, got, err)
			}
		}
		close(b.next)
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Errorf("at the end: got %q, %v", rest, err)
		}
		if resp.Trailer.Get("X-Sum") != "done" {
			t.Errorf("trailers: got %v", resp.Trailer)
		}
	})
}

// A client that closes its connection cancels the request to the backend, and a backend that closes its connection ends the
// response to the client.
func TestReverseProxyCut(t *testing.T) {
	onProxies(t, func(t *testing.T, url string, b *backend) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", url+"/api/hang", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		begun := make([]byte, len("begun"))
		if _, err := io.ReadFull(resp.Body, begun); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = resp.Body.Close()
		await(t, "the end of the backend's request", b.gone)

		resp, err = http.Get(url + "/api/cut")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("truncated response was accepted: %q", got)
		}
	})
}
