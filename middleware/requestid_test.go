package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/middleware"
)

func TestRequestID(t *testing.T) {
	app := installed(func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.ID()) }, middleware.RequestID("X-Request-ID"))
	for name, test := range map[string]struct {
		sent  string
		taken bool
	}{
		"a uuid":             {"0b7f7fa2-8a3c-4a2e-9f36-4e1b1c0a7f55", true},
		"one byte":           {"x", true},
		"the longest":        {strings.Repeat("a", 128), true},
		"every visible byte": {`!"#$%&'()*+,-./09:;<=>?@AZ[\]^_az{|}~`, true},
		"none":               {"", false},
		"too long":           {strings.Repeat("a", 129), false},
		"a space":            {"a b", false},
		"a tab":              {"a\tb", false},
		"a line break":       {"a\r\nb", false},
		"a control byte":     {"a\x7f", false},
		"not ASCII":          {"naïve", false},
	} {
		w := send(app, "GET", "X-Request-ID", test.sent)
		id := w.Header().Get("X-Request-ID")
		if id == "" || id != w.Body.String() {
			t.Errorf("%s: got ID %q in the header and %q in the action, want the same ID", name, id, w.Body)
		}
		if taken := id == test.sent; taken != test.taken {
			t.Errorf("%s: sent ID %q, got %q: adopted %v, want %v", name, test.sent, id, taken, test.taken)
		}
	}
}

func TestRequestIDsDiffer(t *testing.T) {
	app := installed(text("hello"), middleware.RequestID("X-Request-ID"))
	first, second := send(app, "GET").Header().Get("X-Request-ID"), send(app, "GET").Header().Get("X-Request-ID")
	if first == "" || first == second {
		t.Errorf("got IDs %q and %q for two requests, want different IDs", first, second)
	}
}

func TestRequestIDKeepsHeaderOfAction(t *testing.T) {
	app := installed(func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello").Header("X-Trace", "mine") },
		middleware.RequestID("x-trace"))
	w := send(app, "GET", "X-Trace", "theirs")
	if got := w.Header().Values("X-Trace"); len(got) != 1 || got[0] != "mine" {
		t.Errorf("got X-Trace %q, want the value set by the action", got)
	}
}

// Every response, and every middleware that reads it, has the same ID, and the ID is unique.
func TestRequestIDOnEveryAnswer(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		var seen atomic.Value // set by the outer middleware
		app.Install(dunlin.Hooks{Wrap: func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				resp := next(r)
				seen.Store(resp.Get("X-Outer") + " " + resp.Get("x-request-id"))
				return resp.AddHeader("X-Seen", "yes")
			}
		}}, middleware.RequestID("X-Outer"), middleware.RequestID("X-Request-ID"))
		plain := middleware.RequestID("X-Alone").Middleware()
		app.Get("/text", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
		app.Get("/asked", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.ID()) })
		app.Get("/json", func(r *dunlin.Request) dunlin.Response { return dunlin.JSON(map[string]string{"id": "1"}) })
		app.Get("/own", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("x").Header("X-A", "1").Header("X-B", "2") })
		app.Get("/none", func(r *dunlin.Request) dunlin.Response { return dunlin.NoContent() })
		app.Get("/same", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("x").Status(304) })
		app.Get("/panic", func(r *dunlin.Request) dunlin.Response { panic("as a test") })
		app.Get("/stream", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := w.Write([]byte("piece")); return err })
		})
		app.Get("/slow", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.ID()) }, plain)
		addr := serve()
		ids := map[string]bool{}
		for _, path := range []string{"/text", "/asked", "/json", "/own", "/none", "/same", "/panic", "/stream", "/slow", "/missing"} {
			for _, method := range []string{"GET", "HEAD", "GET"} {
				req, err := http.NewRequest(method, "http://"+addr+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				body, seen := string(text), seen.Load()
				id := resp.Header.Get("X-Request-Id")
				if len(id) != 26 || ids[id] || resp.Header.Get("X-Outer") != id || seen != id+" "+id || len(resp.Header.Values("X-Request-Id")) != 1 {
					t.Errorf("%s %s: got header %v; middleware saw %q", method, path, resp.Header, seen)
				}
				if alone := resp.Header.Get("X-Alone"); path == "/slow" && alone != id {
					t.Errorf("%s: got ID %q, also sent for another request: %q", path, alone, id)
				}
				if method == "GET" && (path == "/asked" || path == "/slow") && body != id {
					t.Errorf("%s: action saw ID %q, want %q", path, body, id)
				}
				ids[id] = true
			}
		}
	})
}

// A reused response does not expose the ID of its first request.
func TestRequestIDOnReusedResponses(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		kept := dunlin.Text("kept")
		app.Get("/", func(r *dunlin.Request) dunlin.Response { return kept }, middleware.RequestID("X-Request-ID").Middleware())
		addr := serve()
		const request = "GET / HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n"
		first, _ := exchangeRaw(t, addr, request)
		second, _ := exchangeRaw(t, addr, request)
		a, b := first.Header.Values("X-Request-Id"), second.Header.Values("X-Request-Id")
		if len(a) != 1 || len(b) != 1 || a[0] == b[0] || kept.Get("X-Request-ID") != "" {
			t.Errorf("got IDs %q and %q for two requests; the reused response has %q", a, b, kept.Get("X-Request-ID"))
		}
	})
}

// HeaderBytes returns header fields without copying, and the same values as Header.
func TestHeaderBytes(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Text(fmt.Sprintf("%s|%s|%d|%s", ext.HeaderBytes(r, "X-A"), ext.HeaderBytes(r, "x-b"), len(ext.HeaderBytes(r, "X-C")), r.HeaderList("X-B")))
		})
		if _, got := exchangeRaw(t, serve(), "GET / HTTP/1.1\r\nHost: h.example\r\nX-A: 1\r\nX-B: 2\r\nx-b: 3\r\nConnection: close\r\n\r\n"); got != "1|2, 3|0|2, 3" {
			t.Errorf("action: got %q", got)
		}
	})
}

func TestRequestIDBadHeader(t *testing.T) {
	for _, name := range []string{"", "X Request", "X-Request-ID:", "Content-Length"} {
		mustPanic(t, fmt.Sprintf("RequestID(%q)", name), func() { middleware.RequestID(name) })
	}
}

func ExampleRequestID() {
	app := dunlin.New(dunlin.Config{})
	app.Install(middleware.RequestID("X-Request-ID"))
	app.Get("/", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("this is " + r.ID()) })

	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set("X-Request-ID", "order-7-try-2")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Body)
	fmt.Println(w.Header().Get("X-Request-ID"))
	// Output:
	// this is order-7-try-2
	// order-7-try-2
}

// An ID header adds its extra fields to responses that lack them.
func TestIDHeader(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		id := ext.NewIDHeader("x-id", "X-Served-By", "a", "Vary", "Origin")
		last := dunlin.NewHeaderBlock("X-Last", "yes")
		app.Use(func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				if r.Path() == "/named" {
					ext.SetID(r, "named by a test")
				}
				resp := id.SetOn(next(r), r, last)
				if ext.Lacks(resp, last) || !ext.Lacks(resp, dunlin.NewHeaderBlock("X-None", "", "X-Nothing", "")) {
					t.Errorf("%s: response %v lacks the headers that the feature has added", r.Path(), resp)
				}
				return id.SetOn(resp, r, nil)
			}
		})
		app.Get("/text", text("hello"))
		app.Get("/named", text("hello"))
		app.Get("/json", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(1) })
		app.Get("/served", func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").Header("X-Served-By", "b") })
		app.Get("/last", func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").Header("X-Last", "no") })
		app.Get("/own", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(1).Header("X-Id", "own") })
		addr := serve()
		for path, want := range map[string]string{
			"/text": "random a yes", "/named": "named by a test a yes", "/json": "random a yes", "/served": "random b yes", "/last": "random a yes", "/own": "own a yes", "/none": "random a yes",
		} {
			resp, _ := exchangeRaw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n")
			got := []string{resp.Header.Get("X-Id"), resp.Header.Get("X-Served-By"), resp.Header.Get("X-Last")}
			if len(got[0]) == 26 {
				got[0] = "random"
			}
			if said := strings.Join(got, " "); said != want || resp.Header.Get("Vary") != "Origin" || len(resp.Header.Values("X-Id")) != 1 || len(resp.Header.Values("X-Last")) != 1 {
				t.Errorf("%s: got %s, want %s: %v", path, said, want, resp.Header)
			}
		}
	})
	mustPanic(t, "NewIDHeader", func() { ext.NewIDHeader("X-ID", "x-id", "1") })
	odd := []string{"X-A"}
	mustPanic(t, "NewIDHeader", func() { ext.NewIDHeader("X-ID", odd...) })
}

// An ID sent by a client appears only in the response to its own request, with any other middleware and with concurrent
// requests.
func TestRequestIDFromClient(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		id := middleware.RequestID("X-Request-ID")
		five := []dunlin.Feature{
			id, middleware.CORS(middleware.CORSConfig{Origins: []string{page}}), middleware.SecureHeaders(middleware.SecureHeadersConfig{}),
			middleware.RateLimit(middleware.RateLimitConfig{Limit: 1000, Window: time.Hour}),
		}
		kept := dunlin.Text("kept")
		for path, features := range map[string][]dunlin.Feature{"/alone": {id}, "/five": five} {
			g := app.Group(path)
			g.Install(features...)
			g.Get("", func(*dunlin.Request) dunlin.Response { return kept })
			g.Get("/json", func(*dunlin.Request) dunlin.Response { return dunlin.JSON("kept") })
			g.Get("/same", func(*dunlin.Request) dunlin.Response { return kept.Status(304) })
		}
		addr := serve()
		for _, path := range []string{"/alone", "/five", "/alone/json", "/five/json", "/alone/same", "/five/same"} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			sent := []string{"one", "0b7f7fa2-8a3c-4a2e-9f36-4e1b1c0a7f55", "", strings.Repeat("x", 128), "a b", "last"}
			for i, id := range sent {
				head := "GET " + path + " HTTP/1.1\r\nHost: h.example\r\nOrigin: " + page + "\r\n"
				if id != "" {
					head += "X-Request-ID: " + id + "\r\n"
				}
				if i == len(sent)-1 {
					head += "Connection: close\r\n"
				}
				if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
					t.Fatal(err)
				}
			}
			in, seen := bufio.NewReader(conn), map[string]bool{}
			for _, id := range sent {
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(path, err)
				}
				body, err := io.ReadAll(resp.Body)
				if text := strings.Trim(string(body), "\"\n"); err != nil || text != "kept" && resp.StatusCode != 304 {
					t.Errorf("%s: got body %q, error %v", path, body, err)
				}
				got := resp.Header.Values("X-Request-Id")
				if len(got) != 1 || seen[got[0]] || id != "a b" && id != "" && got[0] != id || (id == "a b" || id == "") && len(got[0]) != 26 {
					t.Errorf("%s: request with ID %q: got ID %q", path, id, got)
				}
				seen[got[0]] = true
				if strings.HasPrefix(path, "/five") && (resp.Header.Get("RateLimit") == "" || resp.Header.Get("RateLimit-Policy") == "" || resp.Header.Get("Vary") != "Origin" || resp.Header.Get("X-Frame-Options") != "DENY") {
					t.Errorf("%s: got %v", path, resp.Header)
				}
			}
			conn.Close()
		}
	})
}
