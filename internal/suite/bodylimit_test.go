package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// readers are the ways to read a body. Each responds with the bytes read.
var readers = map[string]dunlin.Action{
	"bytes": func(r *dunlin.Request) dunlin.Response {
		b, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(string(b))
	},
	"body": func(r *dunlin.Request) dunlin.Response {
		b, err := io.ReadAll(r.Body())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(string(b))
	},
	"decode": func(r *dunlin.Request) dunlin.Response {
		s, err := dunlin.Decode[string](r)
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(`"` + s + `"`)
	},
	"form": func(r *dunlin.Request) dunlin.Response {
		values, err := r.Form()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(values.Encode())
	},
	"std": dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, fmt.Sprint("over ", over.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		_, _ = w.Write(b)
	})),
}

// post sends a body to path, optionally in one chunk, and returns the status and the body of the answer.
func post(t *testing.T, addr, path, body string, chunked bool) (status, answer string) {
	t.Helper()
	headers := []string{"Content-Type: application/json"}
	if strings.HasSuffix(path, "/form") {
		headers[0] = "Content-Type: application/x-www-form-urlencoded"
	}
	if chunked {
		headers = append(headers, "Transfer-Encoding: chunked")
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	conn := Dial(t, addr)
	_, _ = io.WriteString(conn, Request("POST "+path, append(headers, "", body)...))
	got, err := ReadAnswer(bufio.NewReader(conn), "POST")
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	head, answer, _ := strings.Cut(got, "\n\n")
	return head[9:12], answer
}

// A route's limit on the body holds for all ways to read it. A group's limit holds for its routes. Both override the limit of
// the Config, whether higher or lower.
func TestMaxBody(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxBody: 100}}, func(app *dunlin.App) {
			least := dunlin.Limits{MaxBody: 20} // the limits of groups and of the Config have one type
			small, large := app.WithMaxBody(least.MaxBody).Group("/small"), app.Group("/large").WithMaxBody(100_000)
			for name, act := range readers {
				small.Post("/"+name, act)
				large.Post("/"+name, act)
				large.Post("/less/"+name, act).MaxBody(50)
				app.Post("/app/"+name, act)
			}
		})
		for name := range readers {
			for prefix, limit := range map[string]int{"/small/": 20, "/large/less/": 50, "/large/": 100_000, "/app/": 100} {
				if name == "std" && prefix == "/app/" {
					limit = 200_000 // the Config's limit does not hold for standard handlers
				}
				for _, chunked := range []bool{false, true} {
					for _, n := range []int{3, limit, limit + 1} {
						body := `"` + strings.Repeat("x", n-2) + `"`
						if name == "form" {
							body = strings.Repeat("x", n-1) + "="
						}
						status, answer := post(t, addr, prefix+name, body, chunked)
						wantStatus, want := "200", body
						switch {
						case limit == 200_000:
						case n > limit && name == "std" && chunked:
							wantStatus, want = "413", fmt.Sprintf("over %d\n", limit)
						case n > limit:
							wantStatus, want = "413", fmt.Sprintf(`{"title":"Request Entity Too Large","status":413,"detail":"the request body is larger than the limit of %d bytes"}`, limit)
						}
						if status != wantStatus || answer != want {
							t.Errorf("%s%s, %d bytes, chunked %v: got %s %s, want %s %s", prefix, name, n, chunked, status, Clip(answer), wantStatus, Clip(want))
						}
					}
				}
			}
		}
	})
}

// A body whose announced length exceeds the limit is refused before it arrives.
func TestMaxBodyAnnounced(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			for name, act := range readers {
				app.Post("/small/"+name, act).MaxBody(20)
			}
		})
		for name := range readers {
			for _, headers := range [][]string{{"Content-Length: 21"}, {"Content-Length: 100000"}, {"Content-Length: 21", "Expect: 100-continue"}} {
				conn := Dial(t, addr)
				kind := "Content-Type: application/json"
				if name == "form" {
					kind = "Content-Type: application/x-www-form-urlencoded"
				}
				_, _ = io.WriteString(conn, Request("POST /small/"+name, append(headers, kind)...))
				got, err := ReadAnswer(bufio.NewReader(conn), "POST")
				if err != nil || got[9:12] != "413" {
					t.Errorf("%s %v: got %q, %v", name, headers, got, err)
				}
			}
		}
	})
}

func TestMaxBodyPanics(t *testing.T) {
	app, _ := NewApp(dunlin.Config{})
	WantContains(t, "the panic", PanicText(func() { app.WithMaxBody(0) }), "MaxBody(0)", "bodylimit_test.go")
	WantContains(t, "the panic", PanicText(func() { app.Get("/", Text("")).MaxBody(-1) }), "MaxBody(-1)", "bodylimit_test.go")
}

// A standard handler can read the body again after code that has read it, any number of times.
func TestStdAfterBytes(t *testing.T) {
	read := func(r *dunlin.Request) {
		if _, err := r.Bytes(); err != nil {
			panic(err)
		}
	}
	before := func(act dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			read(r)
			return act(r)
		}
	}
	drain := dunlin.FromStd(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	twice := func(act dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			std := r.Std()
			read(r)
			if again := r.Std(); again.Body == http.NoBody && std.ContentLength != 0 {
				return dunlin.Text("no body")
			}
			drain(r)
			return act(r)
		}
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Post("/once", readers["std"], before)
			app.Post("/limited", readers["std"], before).MaxBody(100_000)
			app.Post("/twice", readers["std"], twice)
			g := app.Group("/behind", before)
			g.UseStd(func(next http.Handler) http.Handler { return next })
			g.Post("/std", readers["std"])
			g.Post("/bytes", readers["bytes"])
		})
		for _, path := range []string{"/once", "/limited", "/twice", "/behind/std", "/behind/bytes"} {
			for _, n := range []int{0, 5, 5000, 100_000} {
				for _, chunked := range []bool{false, true} {
					if n == 0 && chunked {
						continue // an empty chunk would be the last
					}
					body := strings.Repeat("x", n)
					if status, got := post(t, addr, path, body, chunked); status != "200" || got != body {
						t.Errorf("%s, %d bytes, chunked %v: got %s %s", path, n, chunked, status, Clip(got))
					}
				}
			}
		}
	})
}

// The body read by Bytes is borrowed: a goroutine that outlives its handler does not see the body of another request.
func TestStdAfterBytesEnds(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		kept := make(chan io.Reader, 1)
		keep := dunlin.FromStd(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kept <- r.Body }))
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Post("/", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return keep(r)
			})
		})
		Exchange(t, addr, false, Request("POST /", "", "secret"), Request("GET /probe"))
		if b, err := io.ReadAll(<-kept); len(b) > 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("read %q, %v", b, err)
		}
	})
}

// The announced length does not influence how often the memory of a body grows.
func TestBodyWithLengthGrowsAsReceived(t *testing.T) {
	const size = 300_000
	app, _ := NewApp(dunlin.Config{Limits: dunlin.Limits{MaxBody: math.MaxInt64}})
	app.Post("/", readers["bytes"])
	allocs := testing.AllocsPerRun(1, func() {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
		req.ContentLength = math.MaxInt64
		w := httptest.NewRecorder()
		if app.ServeHTTP(w, req); w.Body.Len() != size {
			t.Errorf("got %d %.90q", w.Code, w.Body)
		}
	})
	if allocs > 200 {
		t.Errorf("%v allocations for a body of %d bytes", allocs, size)
	}
}

// A malformed or truncated body is the client's error, however the action reads it.
func TestBrokenBodies(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			for name, act := range readers {
				app.Post("/"+name, act)
			}
		})
		for _, path := range []string{"/bytes", "/body", "/decode", "/form"} {
			mediaType := "Content-Type: application/json"
			if path == "/form" {
				mediaType = "Content-Type: application/x-www-form-urlencoded"
			}
			for _, broken := range []string{
				Request("POST "+path, mediaType, "Transfer-Encoding: chunked") + "3\r\nabc\r\nxyz\r\n",
				Request("POST "+path, mediaType, "Transfer-Encoding: chunked") + "3\r\nab",
				Request("POST "+path, mediaType, "Content-Length: 100") + "abc",
				Request("POST "+path, mediaType, "Content-Length: 100000") + "abc",
			} {
				conn := Dial(t, addr)
				Send(t, conn, broken)
				if err := CloseWrite(conn); err != nil {
					t.Fatal(err)
				}
				if got, err := ReadAnswer(bufio.NewReader(conn), "POST"); err != nil || got[9:12] != "400" {
					t.Errorf("%q: got %q, %v; want a 400", broken, got, err)
				}
			}
		}
		if got := logs.String(); got != "" {
			t.Errorf("logged as errors of the server: %s", got)
		}
	})
}
