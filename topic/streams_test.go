package topic_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/topic"
)

// Streams work over both versions of HTTP/1, with TLS, and inside middleware that encodes responses or adds headers.
func TestKindsOfStreams(t *testing.T) {
	for name, v := range map[string]struct {
		version, header string
		secure          bool
		plain           bool // the body is text
	}{
		"HTTP/1.1": {"HTTP/1.1", "X: y", false, true},
		"TLS":      {"HTTP/1.1", "X: y", true, true},
		"HTTP/1.0": {"HTTP/1.0", "X: y", false, true},
		"encoded":  {"HTTP/1.1", "Accept-Encoding: gzip", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
				hub := topic.New(app, topic.Settings{})
				g := app.Group("")
				if !v.plain {
					g.Use(middleware.Compress(middleware.CompressConfig{MinSize: 1}))
				}
				g.Use(func(next dunlin.Action) dunlin.Action {
					return func(r *dunlin.Request) dunlin.Response { return next(r).Header("X-Own", "kept") }
				})
				g.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("x")) })
				dial := server(t, app, v.secure)
				head := httpHead(t, dial(), "HEAD /events HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n")
				if rest, err := io.ReadAll(head.Body); err != nil || len(rest) > 0 || head.StatusCode != http.StatusOK {
					t.Errorf("HEAD was answered %s, %q, %v", head.Status, rest, err)
				}
				resp := httpHead(t, dial(), fmt.Sprintf("GET /events %s\r\nHost: h.example\r\n%s\r\n\r\n", v.version, v.header))
				if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Own") != "kept" || resp.Header.Get("Content-Length") != "" {
					t.Fatalf("answered %s, %v", resp.Status, resp.Header)
				}
				body := io.Reader(resp.Body)
				if !v.plain {
					z, err := gzip.NewReader(body)
					if err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
						t.Fatalf("not encoded: %v, %v", err, resp.Header)
					}
					body = z
				}
				s := &source{t, resp.Body, bufio.NewReader(body)}
				s.expect("", "")
				publish(t, hub.Topic("x"), "one", strings.Repeat("two ", 20_000))
				s.expect("x", "one")
				s.expect("x", strings.Repeat("two ", 20_000))
				for range 3000 {
					publish(t, hub.Topic("x"), strings.Repeat("y", 200))
				}
			})
		})
	}
}

// With TLS up to 16 KB of output of a client that does not read is buffered and charged.
func TestTLSClientsThatDoNotRead(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	hub := topic.New(app, topic.Settings{MaxMessages: 50})
	app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("x")) })
	dial := server(t, app, true)
	const clients = 5
	var streams []*source
	for range clients {
		resp := httpHead(t, dial(), "GET /events HTTP/1.1\r\nHost: h.example\r\n\r\n")
		s := &source{t, resp.Body, bufio.NewReader(resp.Body)}
		s.expect("", "")
		streams = append(streams, s)
	}
	data := strings.Repeat("x", 4000)
	for hub.Stats().Dropped < 5000 { // more than the buffers of the system hold
		publish(t, hub.Topic("x"), data)
		if held := app.Stats().Memory.HeldFor["output"]; held > clients*64<<10 {
			t.Fatalf("%d bytes are held as output", held)
		}
	}
	for _, s := range streams {
		for {
			e, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			if e.kind == "resync" {
				break
			}
		}
	}
}

// The connection of a slow subscriber of a topic with the policy Cut is closed. The client detects this when it reads.
func TestCutClients(t *testing.T) {
	onEngines(t, topic.Settings{MaxMessages: 20, Slow: topic.Cut}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		slow := open()
		slow.say("!subscribe - x")
		slow.position("!at")
		data := strings.Repeat("x", 8000)
		for hub.Stats().Dropped < 3000 { // more than the buffers of the system hold
			publish(t, hub.Topic("x"), data)
		}
		for {
			text, err := slow.next()
			if text == "close 1008" {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// httpHead sends a request and returns the response.
func httpHead(t *testing.T, conn net.Conn, request string) *http.Response {
	t.Helper()
	method, _, _ := strings.Cut(request, " ")
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// server serves app and returns a function that opens a connection to it.
func server(t *testing.T, app *dunlin.App, secure bool) func() net.Conn {
	t.Helper()
	opened := func(conn net.Conn, err error) net.Conn {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
	if !secure {
		addr := dunlintest.Serve(t, app)
		return func() net.Conn { return opened(net.Dial("tcp", addr)) }
	}
	certs := httptest.NewTLSServer(nil) // it has a certificate
	t.Cleanup(certs.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = app.ServeTLS(ln, &tls.Config{Certificates: certs.TLS.Certificates}) // it ends with the test
	}()
	t.Cleanup(func() { shutdown(t, app); <-served })
	return func() net.Conn {
		return opened(tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true}))
	}
}

func shutdown(t *testing.T, app *dunlin.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := app.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
