package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// usersJSON is the list as encoding/json writes it.
func usersJSON(t *testing.T) string {
	t.Helper()
	type row struct {
		Id         int
		Age        int
		First_Name string
		Last_Name  string
		Framework  string
	}
	var rows []row
	for i := 1; i <= 1000; i++ {
		rows = append(rows, row{i, 25, fmt.Sprint("First_name", i), fmt.Sprint("Last_Name", i), "dunlin"})
	}
	b, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func quietApp(config dunlin.Config) *dunlin.App {
	config.Logger = slog.New(slog.DiscardHandler)
	return newApp(config)
}

func TestRoutes(t *testing.T) {
	const plain, problem = "text/plain; charset=utf-8", "application/problem+json"
	list := usersJSON(t)
	app := quietApp(dunlin.Config{})
	for _, c := range []struct {
		method, target, body, contentType string // of the request
		status                            int
		wantType, want                    string
	}{
		{"GET", "/plaintext", "", "", 200, plain, "Hello, World!"},
		{"HEAD", "/plaintext", "", "", 200, plain, ""},
		{"GET", "/json", "", "", 200, "application/json", `{"message":"Hello, World!"}`},
		{"GET", "/users/7", "", "", 200, plain, "7"},
		{"GET", "/users/a%2Fb%20%C3%A9", "", "", 200, plain, "a/b é"},
		{"GET", "/users/7/edit", "", "", 200, "application/json", `{"id":"7","action":"edit"}`},
		{"GET", "/users/%22/%3C", "", "", 200, "application/json", `{"id":"\"","action":"\u003c"}`},
		{"POST", "/echo", "some\x00bytes", "text/x", 200, "text/x", "some\x00bytes"},
		{"POST", "/echo", "", "", 200, "application/octet-stream", ""},
		{"POST", "/echo", "x", "", 200, "application/octet-stream", "x"},
		{"GET", "/api/v1/users", "", "", 200, "application/json", list},
		{"GET", "/api/v1/users/seq", "", "", 200, "application/json", list},
		{"GET", "/headers", "", "", 200, "text/plain", "hello world!"},
		{"GET", "/sleep?ms=1", "", "", 200, plain, "slept 1 ms\n"},
		{"GET", "/sleep", "", "", 400, problem, `{"title":"Bad Request","status":400,"detail":"query parameter \"ms\" is missing: it must be an integer"}`},
		{"GET", "/sleep?ms=x", "", "", 400, problem, `{"title":"Bad Request","status":400,"detail":"query parameter \"ms\" is \"x\": it must be an integer"}`},
		{"GET", "/sleep?ms=-1", "", "", 400, problem, `{"title":"Bad Request","status":400,"detail":"ms must be between 0 and 60000"}`},
		{"GET", "/panic", "", "", 500, problem, `{"title":"Internal Server Error","status":500}`},
		{"GET", "/healthz", "", "", 200, plain, "ok\n"},
		{"GET", "/nowhere", "", "", 404, problem, `{"title":"Not Found","status":404}`},
		{"PUT", "/echo", "", "", 405, problem, `{"title":"Method Not Allowed","status":405,"detail":"the path takes POST, OPTIONS, not PUT"}`},
	} {
		req := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		if c.contentType != "" {
			req.Header.Set("Content-Type", c.contentType)
		}
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.wantType || w.Body.String() != c.want {
			t.Errorf("%s %s: got %d %s %.200q, want %d %s %.200q", c.method, c.target, w.Code, w.Header().Get("Content-Type"), w.Body, c.status, c.wantType, c.want)
		}
	}
}

func TestHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	quietApp(dunlin.Config{}).ServeHTTP(w, httptest.NewRequest("GET", "/headers", nil))
	h := w.Header()
	if h.Get("Content-Length") != "12" || h.Get("Cache-Control") != "public,max-age=30" || h.Get("Content-Type") != "text/plain" || len(h) != 3 {
		t.Errorf("got %v", h)
	}
}

// Profiles are served only on the inner address, and allocations are sampled only with them.
func TestProfiles(t *testing.T) {
	if runtime.MemProfileRate != 0 {
		t.Errorf("allocations are sampled: got rate %d", runtime.MemProfileRate)
	}
	defer func() { runtime.MemProfileRate = 0 }()
	app := quietApp(dunlin.Config{})
	addProfiles(app, "127.0.0.1:0")
	if runtime.MemProfileRate != profileRate || profileRate == 0 {
		t.Errorf("got rate %d, want %d", runtime.MemProfileRate, profileRate)
	}
	inner := app.Inner("127.0.0.1:0").App()
	for target, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/cmdline": "users.test", "/debug/pprof/goroutine?debug=1": "goroutine profile"} {
		w := httptest.NewRecorder()
		inner.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d without %q: got %.200q", target, w.Code, want, w.Body)
		}
		w = httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != 404 {
			t.Errorf("%s on the public address: got %d", target, w.Code)
		}
	}
}

// serve runs the app on an engine and returns its address.
func serve(t *testing.T, engine dunlin.Engine) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	app := quietApp(dunlin.Config{Engine: engine, Ready: func(net.Addr, dunlin.Engine) { close(ready) }})
	served := make(chan error, 1)
	go func() { served <- app.Serve(ln) }()
	select {
	case <-ready:
	case err := <-served:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := app.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String()
}

// A body of 100 MB gets 413 and is never held in memory as a whole.
func TestHugeBody(t *testing.T) {
	const size = 100 << 20
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
		for _, how := range []string{fmt.Sprintf("Content-Length: %d", size), "Transfer-Encoding: chunked"} {
			t.Run(engine.String()+" "+how, func(t *testing.T) {
				if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
					t.Skip("the loop engine runs on Linux only")
				}
				conn, err := net.Dial("tcp", serve(t, engine))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, _ = fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", how)
				go sendZeros(conn, size, strings.HasPrefix(how, "Transfer"))
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != http.StatusRequestEntityTooLarge {
					t.Errorf("status %d, want 413", resp.StatusCode)
				}
				runtime.ReadMemStats(&after)
				if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 {
					t.Errorf("got %d MB of allocations", grown>>20)
				}
			})
		}
	}
}

// sendZeros sends a body of size zero bytes. It stops early if the server closes the connection.
func sendZeros(w io.Writer, size int, chunked bool) {
	piece := make([]byte, 64<<10)
	for sent := 0; sent < size; sent += len(piece) {
		if chunked {
			_, _ = fmt.Fprintf(w, "%x\r\n", len(piece))
		}
		if _, err := w.Write(piece); err != nil {
			return
		}
		if chunked {
			_, _ = io.WriteString(w, "\r\n")
		}
	}
	if chunked {
		_, _ = io.WriteString(w, "0\r\n\r\n")
	}
}
