package dunlin_test

import (
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A steady-state request allocates nothing. Its share of a chunk of safe strings is less than one allocation.
func TestAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	type message struct {
		Message string   `json:"message"`
		Tags    []string `json:"tags"`
		N       int
	}
	block := dunlin.NewHeaderBlock("Content-Type", "text/plain", "Cache-Control", "public,max-age=30", "X-A", "1")
	vary := dunlin.NewHeaderBlock("Vary", "Accept")
	key := dunlin.NewKey[*int]("n")
	shared, n := []string{"a", "b"}, 0
	page := strings.Repeat("x", 5000)
	for _, c := range []struct {
		name, method, pattern, target string
		act                           dunlin.Action
	}{
		{"text", "GET", "/", "/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") }},
		{"large text", "GET", "/", "/", func(*dunlin.Request) dunlin.Response { return dunlin.Text(page) }},
		{"HEAD", "HEAD", "/", "/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") }},
		{"204", "GET", "/", "/", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() }},
		{"JSON with two headers", "GET", "/", "/", func(*dunlin.Request) dunlin.Response {
			return dunlin.JSON(message{"Hello, World!", shared, 7}).Header("X-A", "1").Header("X-B", "2")
		}},
		{"block", "GET", "/", "/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello world!").With(block) }},
		{"block on a block", "GET", "/", "/", func(*dunlin.Request) dunlin.Response {
			return dunlin.Text("hello world!").With(vary).With(block)
		}},
		{"status and cache", "GET", "/", "/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").Status(203).Cache(30e9) }},
		{"parameter", "GET", "/users/{id}", "/users/7", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("id")) }},
		{"two parameters, constrained", "GET", "/users/{id:int}/{action}", "/users/7/edit", func(r *dunlin.Request) dunlin.Response {
			if _, err := dunlin.Param[int](r, "id"); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(r.Param("action"))
		}},
		{"typed query", "GET", "/", "/?n=1&wait=2s&since=2026-01-31T15:04:05Z", func(r *dunlin.Request) dunlin.Response {
			n, err := dunlin.Query[int64](r, "n")
			wait, err2 := dunlin.QueryOr(r, "wait", time.Minute)
			since, err3 := dunlin.Query[time.Time](r, "since")
			if most, err4 := dunlin.QueryOr(r, "most", 20); n != 1 || most != 20 || wait != 2*time.Second || since.IsZero() || err != nil || err2 != nil || err3 != nil || err4 != nil {
				return dunlin.NotFound()
			}
			return dunlin.Text("x")
		}},
		{"catch-all", "GET", "/files/{rest...}", "/files/a/b/c", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("rest")) }},
		{"query", "GET", "/", "/?a=1&b=x%20y", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Query("b")) }},
		{"header and cookie", "GET", "/", "/", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Text(r.Header("X-In")).Header("X-Out", r.Cookie("c"))
		}},
		{"request ID and typed value", "GET", "/", "/", func(r *dunlin.Request) dunlin.Response {
			key.Set(r, &n)
			if p, ok := key.Get(r); !ok || p != &n {
				return dunlin.NotFound()
			}
			return dunlin.Text(r.ID())
		}},
		{"middleware's header", "GET", "/", "/", func(*dunlin.Request) dunlin.Response {
			r := dunlin.Text("x").Header("X-A", "1")
			if r.Get("x-a") != "1" || r.StatusCode() != 200 || r.Len() != 1 || len(r.Body()) != 1 {
				return dunlin.NotFound()
			}
			return r.Header("X-A", "2")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			app, logs := newApp(dunlin.Config{})
			app.Get("/other/{thing}", c.act)
			app.Get(c.pattern, c.act)
			req := httptest.NewRequest(c.method, c.target, nil)
			req.Header.Set("X-In", "in")
			req.Header.Set("Cookie", "a=b; c=d")
			w := suite.NewDiscard()
			for _, rewrites := range []bool{false, true} {
				if rewrites {
					app.Rewrite("/rewritten/{path...}", "/{path...}")
				}
				allocs := testing.AllocsPerRun(2000, func() {
					clear(w.Header())
					app.ServeHTTP(w, req)
				})
				if allocs != 0 {
					t.Errorf("got %v allocations per request, want 0 (with rewrite rules: %v)", allocs, rewrites)
				}
			}
			if s := logs.String(); s != "" {
				t.Errorf("got log: %s", s)
			}
		})
	}
}

// Reading a body of known length reuses the buffer of the request.
func TestAllocationsOfBytes(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	app, _ := newApp(dunlin.Config{})
	app.Post("/", func(r *dunlin.Request) dunlin.Response {
		b, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes("", b)
	})
	body := strings.NewReader("")
	req := httptest.NewRequest("POST", "/", body)
	req.ContentLength = 1000
	w := suite.NewDiscard()
	text := strings.Repeat("x", 1000)
	allocs := testing.AllocsPerRun(1000, func() {
		clear(w.Header())
		body.Reset(text)
		app.ServeHTTP(w, req)
	})
	// One for MaxBytesReader, and one for the reader that converts its error to a problem.
	if allocs > 2 {
		t.Errorf("got %v allocations, want at most 2", allocs)
	}
}

// The buffer of a stream starts with the length of the route's previous stream, so a page written in many pieces takes one
// allocation of about its length.
func TestAllocationsOfStream(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, size := range []int{20, 1200, 7000} {
		piece := []byte("twenty bytes a piece")
		app, _ := newApp(dunlin.Config{})
		app.Get("/", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				for range size / len(piece) {
					if _, err := w.Write(piece); err != nil {
						return err
					}
				}
				return nil
			})
		})
		req, w := httptest.NewRequest("GET", "/", nil), suite.NewDiscard()
		serve := func() {
			clear(w.Header())
			app.ServeHTTP(w, req)
		}
		serve()
		allocs := testing.AllocsPerRun(1000, serve)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 1000 {
			serve()
		}
		runtime.ReadMemStats(&after)
		bytes := int(after.TotalAlloc-before.TotalAlloc) / 1000
		// The allocations are the page, the writer, the function that produces the response, and the argument of Stream.
		if allocs > 5 || bytes > size+size/4+700 {
			t.Errorf("page of %d bytes: got %v allocations of %d bytes in total, want at most 5 of %d", size, allocs, bytes, size+size/4+700)
		}
	}
}
