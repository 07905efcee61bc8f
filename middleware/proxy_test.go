package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/resilience"
)

func backend(t *testing.T, h http.HandlerFunc) *url.URL {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// echoRequest is an upstream handler that answers with the request it received.
func echoRequest(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := r.Header
	_, _ = fmt.Fprintf(w, "%s %s for=%v host=%v proto=%v forwarded=%v te=%v body=%s", r.Method, r.URL, h["X-Forwarded-For"], h["X-Forwarded-Host"], h["X-Forwarded-Proto"], h["Forwarded"], h["Te"], body)
}

func TestProxy(t *testing.T) {
	target := backend(t, echoRequest)
	target.Path = "/base"
	forged := "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.net\r\nForwarded: for=6.6.6.6\r\nTE: gzip\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\n"
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Handle("*", "/p/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target, AmbiguousPaths: true}))
		addr := serve()
		resp, body := exchangeRaw(t, addr, "POST /p/a%2Fb?x=1 HTTP/1.1\r\nHost: h.example\r\n"+forged+"Content-Length: 3\r\n\r\nabc")
		if want := "POST /base/p/a%2Fb?x=1 for=[127.0.0.1] host=[h.example] proto=[http] forwarded=[] te=[] body=abc"; resp.StatusCode != 200 || body != want {
			t.Errorf("%d %s\nwant %s", resp.StatusCode, body, want)
		}
	})
	// The forwarding fields of a trusted proxy are passed on.
	config := quiet
	config.Proxy.Trusted = []string{"192.0.2.0/24"}
	app := dunlin.New(config)
	app.Handle("*", "/p/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target, KeepHost: true, Rewrite: func(p *httputil.ProxyRequest) { p.Out.Method = "PUT" }}))
	w := ask(app, "GET", "/p/x", "X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "public.example")
	if want := "PUT /base/p/x for=[203.0.113.7, 192.0.2.1] host=[example.com] proto=[https] forwarded=[] te=[] body="; w.Body.String() != want {
		t.Errorf("%s\nwant %s", w.Body, want)
	}
}

// The upstream server gets the address from the trusted header, and none of the forwarding fields that the client set.
func TestProxyForwardedHeader(t *testing.T) {
	target := backend(t, echoRequest)
	for header, value := range map[string]string{"X-Forwarded-For": "6.6.6.6, 203.0.113.7", "Forwarded": "for=6.6.6.6, for=203.0.113.7", "X-Real-Ip": "203.0.113.7"} {
		for peer, want := range map[string]string{"192.0.2.1:1234": "[203.0.113.7, 192.0.2.1]", "@": "[203.0.113.7]"} {
			config := quiet
			config.Proxy.Trusted, config.Proxy.ForwardedHeader = []string{"192.0.2.0/24", "unix"}, header
			app := dunlin.New(config)
			app.Get("/", middleware.Proxy(middleware.ProxyConfig{Target: target}))
			req := httptest.NewRequest("GET", "/", nil)
			req.RemoteAddr = peer
			req.Header.Set("X-Forwarded-For", "6.6.6.6")
			req.Header.Set(header, value)
			w := httptest.NewRecorder()
			if app.ServeHTTP(w, req); !strings.Contains(w.Body.String(), "for="+want+" host") {
				t.Errorf("%s from peer %s: got %s", header, peer, w.Body)
			}
		}
	}
}

func TestProxyStreams(t *testing.T) {
	more := make(chan struct{})
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = fmt.Fprint(w, "data: 2\n\n")
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Get("/events", middleware.Proxy(middleware.ProxyConfig{Target: target}))
		resp, err := http.Get("http://" + serve() + "/events")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		br := bufio.NewReader(resp.Body)
		if line, err := br.ReadString('\n'); line != "data: 1\n" {
			t.Fatalf("before the second event: got %q, error %v", line, err)
		}
		more <- struct{}{}
		if rest, err := io.ReadAll(br); string(rest) != "\ndata: 2\n\n" || err != nil {
			t.Errorf("got %q, %v", rest, err)
		}
	})
}

// rawBackend returns the URL of an upstream server. It reads the head of a request on each connection, calls answer, and closes
// the connection.
func rawBackend(t *testing.T, answer func(net.Conn)) *url.URL {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					answer(conn)
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", Host: ln.Addr().String()}
}

// The proxy does not wait for the rest of the body after the upstream server has refused a request early.
func TestProxyMissingRestOfBody(t *testing.T) {
	target := rawBackend(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // as if it still read the request
	})
	config := quiet
	config.Timeouts.Body = 100 * time.Millisecond
	onEnginesWith(t, config, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Post("/", middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger}))
		addr := serve()
		for _, rest := range []string{"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n", "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\nabc"} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+rest)
			if got, err := io.ReadAll(conn); err != nil || !strings.Contains(string(got), "HTTP/1.1 413 ") {
				t.Errorf("%q: got %q, then error %v", rest, got, err)
			}
		}
	})
}

func TestProxyUpgrades(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = fmt.Fprintf(rw, "you said %s", line)
		_ = rw.Flush()
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Get("/up", middleware.Proxy(middleware.ProxyConfig{Target: target}))
		conn, err := net.Dial("tcp", serve())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprint(conn, "GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		br := bufio.NewReader(conn)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "echo" {
			t.Fatalf("got %v, %v", resp, err)
		}
		_, _ = fmt.Fprint(conn, "hello\n")
		if got, err := io.ReadAll(br); string(got) != "you said hello\n" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// The proxy refuses upgrades to HTTP/2 and TLS: such a tunnel would carry requests that no middleware sees.
func TestProxyRefusesTunnels(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = fmt.Fprintf(w, "connection=%v settings=%v", r.Header["Connection"], r.Header["Http2-Settings"])
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Get("/up", middleware.Proxy(middleware.ProxyConfig{Target: target}))
		addr := serve()
		for _, fields := range []string{
			"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
			"Connection: Upgrade\r\nUpgrade: H2C\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
			"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
			"Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n",
			"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n",
		} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, _ = fmt.Fprintf(conn, "GET /up HTTP/1.1\r\nHost: h\r\n%s\r\n", fields)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body := make([]byte, max(resp.ContentLength, 0))
			_, _ = io.ReadFull(resp.Body, body)
			if resp.StatusCode != 200 || string(body) != "connection=[] settings=[]" {
				t.Errorf("%q: got %d %s", fields, resp.StatusCode, body)
			}
			_ = conn.Close()
		}
	})
}

func TestProxyErrors(t *testing.T) {
	unreachable := &url.URL{Scheme: "http", Host: "127.0.0.1:1"} // refuses connections
	app := newApp(middleware.Proxy(middleware.ProxyConfig{Target: unreachable, Logger: quiet.Logger}))
	if w := send(app, "GET"); w.Code != 502 || !strings.Contains(w.Body.String(), `"status":502`) || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("unreachable upstream: got %d %s", w.Code, w.Body)
	}
	never := make(chan struct{})
	defer close(never)
	slow := backend(t, func(http.ResponseWriter, *http.Request) { <-never })
	app = newApp(middleware.Proxy(middleware.ProxyConfig{Target: slow, Logger: quiet.Logger, Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}))
	if w := send(app, "GET"); w.Code != 504 || !strings.Contains(w.Body.String(), "in time") {
		t.Errorf("slow upstream: got %d %s", w.Code, w.Body)
	}
	for _, bad := range []*url.URL{nil, {}, {Scheme: "ftp", Host: "h"}, {Scheme: "http"}} {
		mustPanic(t, fmt.Sprint(bad), func() { middleware.Proxy(middleware.ProxyConfig{Target: bad}) })
	}
}

// An invalid upstream response gets 502.
func TestProxyBadStatus(t *testing.T) {
	target := rawBackend(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 099 What\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	app := newApp(middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger}))
	if w := send(app, "GET"); w.Code != 502 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func ExampleProxy() {
	legacy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "the old service answers ", r.URL.Path)
	}))
	defer legacy.Close()
	target, _ := url.Parse(legacy.URL)

	app := dunlin.New(dunlin.Config{})
	app.Handle("*", "/legacy/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target}))
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/legacy/report", nil))
	fmt.Println(w.Body)
	// Output: the old service answers /legacy/report
}

// Announced trailers pass in both directions. Request trailers are available only at the end of the body.
func TestProxyPassesTrailers(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Back")
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", body, r.Trailer.Get("X-There"))
		w.Header().Set("X-Back", "again")
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger}))
		resp, body := exchangeRaw(t, serve(), "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTrailer: X-There\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"5\r\nhello\r\n0\r\nX-There: and\r\n\r\n")
		if body != "hello and" || resp.Trailer.Get("X-Back") != "again" {
			t.Errorf("got %d %q, trailers %v", resp.StatusCode, body, resp.Trailer)
		}
	})
}

// Trailers added by Rewrite are sent together with those of the client. A field that must be known before the body (RFC 9110,
// section 6.5.1) does not reach the upstream server as a trailer: the request is passed on without it, or gets 400 as on the
// loop engine. The test accepts both.
func TestProxyTrailersFromRewrite(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, r.Trailer)
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger,
			Rewrite: func(p *httputil.ProxyRequest) { p.Out.Trailer.Set("X-Own", "own") }}))
		addr := serve()
		for sent, want := range map[string]string{
			"X-There: and\r\nX-Own: forged\r\n":           "map[X-Own:[own] X-There:[and]]",
			"X-There: and\r\nX-Forwarded-For: forged\r\n": "map[X-Own:[own] X-There:[and]]",
			"X-There: and\r\nAuthorization: forged\r\n":   "map[X-Own:[own] X-There:[and]]",
		} {
			resp, body := exchangeRaw(t, addr, "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTrailer: X-There, X-Own, X-Forwarded-For, Authorization\r\n"+
				"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"+sent+"\r\n")
			if body != want && (resp.StatusCode != 400 || strings.Contains(sent, "X-Own")) {
				t.Errorf("%q: got %d %q, want %q", sent, resp.StatusCode, body, want)
			}
		}
	})
}

// An invalid or late request body is the client's error: the client gets the error, and the breaker of the upstream server
// stays closed for the other clients.
func TestProxyReportsClientErrors(t *testing.T) {
	target := backend(t, echoRequest)
	config := quiet
	config.Timeouts.Body, config.Limits.MinBodyRate = 50*time.Millisecond, -1
	onEnginesWith(t, config, func(t *testing.T, app *dunlin.App, serve func() string) {
		breaker := resilience.NewBreaker(resilience.BreakerConfig{Failures: 3, OpenFor: time.Hour})
		app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{
			Target: target, Logger: quiet.Logger, Transport: breaker.Transport(&http.Transport{}),
		})).MaxBody(1000)
		addr := serve()
		const chunked = "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
		for _, c := range []struct {
			name, send string
			status     int
		}{
			{"malformed", chunked + "nonsense\r\n", 400},
			{"too large", chunked + "3e8\r\n" + strings.Repeat("x", 1000) + "\r\n0\r\n\r\n", 413},
			{"too slow", chunked, 408},
			{"malformed Trailer field", strings.Replace(chunked, "Transfer", "Trailer: a b, X-C\r\nTransfer", 1) + "0\r\nX-C: d\r\n\r\n", 200},
			{"too slow, with Content-Length", "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 900\r\n\r\nhello", 408},
		} {
			for range 3 {
				if resp, body := exchangeRaw(t, addr, c.send); resp.StatusCode != c.status {
					t.Errorf("%s: got %d %s, want %d", c.name, resp.StatusCode, body, c.status)
				}
			}
			if breaker.Open() {
				t.Errorf("%s: breaker is open, want closed", c.name)
			}
		}
		for range 4 { // a client that disconnects
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, chunked)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
		if resp, body := exchangeRaw(t, addr, "GET /y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 || breaker.Open() {
			t.Errorf("another client: status %d, body %s, breaker open %v", resp.StatusCode, body, breaker.Open())
		}
	})
}

// An open breaker is temporary: clients get Retry-After, and the log does not get a line for each request.
func TestProxyWithOpenBreaker(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) })
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		breaker := resilience.NewBreaker(resilience.BreakerConfig{OpenFor: time.Hour})
		lines := make(chan string, 30)
		app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{
			Target: target, Logger: slog.New(slog.NewTextHandler(lineWriter(lines), nil)), Transport: breaker.Transport(&http.Transport{}),
		}))
		addr := serve()
		const get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		for !breaker.Open() {
			if resp, _ := exchangeRaw(t, addr, get); resp.StatusCode != 502 {
				t.Fatalf("got status %d, breaker open %v", resp.StatusCode, breaker.Open())
			}
		}
		begin := time.Now()
		for range 20 {
			resp, body := exchangeRaw(t, addr, get)
			want := `{"title":"Service Unavailable","status":503,"detail":"the upstream is temporarily unavailable"}`
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || body != want {
				t.Fatalf("got %d %v %s", resp.StatusCode, resp.Header, body)
			}
		}
		if first := <-lines; !strings.Contains(first, "circuit breaker is open") {
			t.Error(first)
		}
		if n, most := 1+len(lines), 1+int(time.Since(begin)/time.Second); n > most {
			t.Errorf("got %d log lines in %v", n, time.Since(begin))
		}
	})
}

// A lineWriter sends the data of each Write call to a channel.
type lineWriter chan<- string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

// If the upstream server closes the connection mid-response, the client gets 502. If part of the response was already sent, the
// proxy closes the client connection.
func TestProxyTruncatedResponse(t *testing.T) {
	sizes := map[string]struct {
		length, written int
		status          int  // 0: the connection is closed
		orClosed        bool // closing the connection is allowed, too
	}{
		"/nothing": {1000, 0, 502, false}, "/some": {100 << 10, 20 << 10, 502, false},
		"/chunked": {-1, 0, 502, true}, // another goroutine sends the head as soon as it is scheduled
		"/late":    {200 << 10, 100 << 10, 0, false}, "/chunk": {-1, 10, 0, false}, "/whole": {1000, 1000, 200, false},
	}
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		size := sizes[r.URL.Path]
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Set-Cookie", "a=b")
		if size.length >= 0 {
			w.Header().Set("Content-Length", fmt.Sprint(size.length))
		}
		w.WriteHeader(200)
		_, _ = w.Write(make([]byte, size.written))
		if size.written != size.length {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		proxy := middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger})
		app.Handle("*", "/{path}", proxy)
		stdGroup := app.Group("/std")
		stdGroup.UseStd(func(next http.Handler) http.Handler { return http.StripPrefix("/std", next) })
		stdGroup.Handle("*", "/{path}", proxy)
		addr := serve()
		for path, size := range sizes {
			for _, prefix := range []string{"", "/std"} {
				resp, err := http.Get("http://" + addr + prefix + path)
				var body []byte
				if err == nil {
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
				}
				switch {
				case size.status == 0:
					if err == nil {
						t.Errorf("%s: got %d with %d bytes, want an error", prefix+path, resp.StatusCode, len(body))
					}
				case err != nil:
					if !size.orClosed {
						t.Errorf("%s: %v", prefix+path, err)
					}
				case resp.StatusCode != size.status || size.status == 502 && (resp.Header.Get("Content-Type") != "application/problem+json" || resp.Header.Get("Set-Cookie") != "" || !strings.Contains(string(body), "mid-response")):
					t.Errorf("%s: got %d %v %.100s", prefix+path, resp.StatusCode, resp.Header, body)
				}
			}
		}
	})
}

// A stale response replaces a truncated one.
func TestCacheOfTruncatedProxyResponse(t *testing.T) {
	var broken atomic.Bool
	target := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=0, stale-if-error=600")
		w.Header().Set("ETag", `"v"`)
		w.Header().Set("Content-Length", "5")
		if broken.Load() {
			_, _ = io.WriteString(w, "wh")
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "whole")
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		broken.Store(false)
		app.Use(middleware.NewCache(middleware.CacheConfig{Revalidate: true, Logger: quiet.Logger}).Middleware())
		app.Get("/", middleware.Proxy(middleware.ProxyConfig{Target: target, Logger: quiet.Logger}))
		addr := serve()
		for range 2 {
			if resp, body := exchangeRaw(t, addr, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 || body != "whole" {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
			broken.Store(true)
		}
	})
}
