package dunlin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// coded is an error with a status.
type coded int

func (c coded) Error() string   { return "secret of coded" }
func (c coded) StatusCode() int { return int(c) }

// nilError is an error whose pointer receiver must not be nil.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

const problem500Body = `{"title":"Internal Server Error","status":500}`

// The client sees the public part of an error, and the log has the cause.
func TestError(t *testing.T) {
	taken := &dunlin.ProblemDetails{Status: 409, Detail: "taken", Cause: errors.New("secret row")}
	for name, c := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"plain":                  {errors.New("secret"), 500, problem500Body},
		"nil":                    {nil, 500, problem500Body},
		"problem":                {taken, 409, `{"title":"Conflict","status":409,"detail":"taken"}`},
		"wrapped problem":        {fmt.Errorf("secret: %w", taken), 409, `{"title":"Conflict","status":409,"detail":"taken"}`},
		"joined problem":         {errors.Join(errors.New("secret"), taken), 409, `{"title":"Conflict","status":409,"detail":"taken"}`},
		"problem without status": {&dunlin.ProblemDetails{Cause: io.EOF}, 500, problem500Body},
		"problem below 400":      {&dunlin.ProblemDetails{Status: 200, Detail: "secret"}, 500, problem500Body},
		"problem above 599":      {&dunlin.ProblemDetails{Status: 600, Detail: "secret"}, 500, problem500Body},
		"status":                 {coded(402), 402, `{"title":"Payment Required","status":402}`},
		"wrapped status":         {fmt.Errorf("secret: %w", coded(503)), 503, `{"title":"Service Unavailable","status":503}`},
		"status without a text":  {coded(499), 499, `{"title":"Status 499","status":499}`},
		"invalid status":         {coded(200), 500, problem500Body},
		"status far out":         {coded(1 << 20), 500, problem500Body},
		"body too large":         {fmt.Errorf("secret: %w", &http.MaxBytesError{Limit: 5}), 413, `{"title":"Request Entity Too Large","status":413}`},
		"deadline":               {fmt.Errorf("secret: %w", context.DeadlineExceeded), 503, `{"title":"Service Unavailable","status":503}`},
		"panicking text":         {(*nilError)(nil), 500, problem500Body},
	} {
		t.Run(name, func(t *testing.T) {
			logs := new(logBuffer)
			app, _ := newApp(dunlin.Config{Logger: logs.Logger(slog.LevelDebug)})
			app.Get("/things/{id}", func(*dunlin.Request) dunlin.Response { return dunlin.Error(c.err) })
			w := do(app, "GET", "/things/7")
			if w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, c.status, c.body)
			}
			wantLogged(t, logs, "request failed")
			_, logged, _ := strings.Cut(logs.String(), "request failed")
			level := "level=DEBUG"
			if c.status >= 500 {
				level = "level=ERROR"
			}
			wantContains(t, "log", logs.String(), level)
			wantContains(t, "log line", logged, fmt.Sprintf("status=%d", c.status), "method=GET", "path=/things/7", "route=/things/{id}", "id=")
			if c.err != nil && name != "panicking text" && !strings.HasPrefix(name, "problem ") {
				wantContains(t, "log line", logged, strings.ReplaceAll(c.err.Error(), "\n", `\n`))
			}
			wantLacks(t, "answer", w.Body.String(), "secret")
		})
	}
}

// An error with a status that cannot be sent is still logged with its cause.
func TestProblemWithInvalidStatusHasCause(t *testing.T) {
	_, logged := respondWith(t, func() dunlin.Response {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: 302, Cause: errors.New("the cause")})
	})
	wantContains(t, "log", logged, "problem status 302 is not between 400 and 599", "the cause")
}

func TestProblem(t *testing.T) {
	for name, c := range map[string]struct {
		problem dunlin.ProblemDetails
		body    string
	}{
		"zero":      {dunlin.ProblemDetails{}, problem500Body},
		"temporary": {dunlin.ProblemDetails{Status: 503, Temporary: true}, `{"title":"Service Unavailable","status":503}`},
		"all members": {dunlin.ProblemDetails{Type: "https://e.example/p", Title: "T", Status: 400, Detail: "D", Instance: "/i", Cause: errors.New("secret")},
			`{"type":"https://e.example/p","title":"T","status":400,"detail":"D","instance":"/i"}`},
		"extensions in order": {dunlin.ProblemDetails{Status: 400, Extensions: map[string]any{"b": []int{1}, "a": nil, "c": map[string]string{"x": "<"}}},
			`{"title":"Bad Request","status":400,"a":null,"b":[1],"c":{"x":"\u003c"}}`},
		"extensions named like members": {dunlin.ProblemDetails{Status: 400, Extensions: map[string]any{"status": 200, "title": "x", "type": 1, "detail": 1, "instance": 1, "z": 1}},
			`{"title":"Bad Request","status":400,"z":1}`},
		"text that needs escapes": {dunlin.ProblemDetails{Status: 400, Detail: "a\"b\\\n\x00\xff</script>", Extensions: map[string]any{"\"": 1}},
			`{"title":"Bad Request","status":400,"detail":"a\"b\\\n\u0000\ufffd\u003c/script\u003e","\"":1}`},
	} {
		w, _ := respondWith(t, func() dunlin.Response { return dunlin.Problem(&c.problem) })
		if temporary := name == "temporary"; temporary != (w.Header().Get("Retry-After") == "1") {
			t.Errorf("%s: got Retry-After %q", name, w.Header().Get("Retry-After"))
		}
		if w.Body.String() != c.body || w.Header().Get("Content-Type") != "application/problem+json" || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: got %s, want %s", name, w.Body, c.body)
		}
	}
}

func TestProblemDetailsIsAnError(t *testing.T) {
	cause := errors.New("no row")
	p := &dunlin.ProblemDetails{Status: 404, Detail: "no such user", Cause: cause}
	if got, want := p.Error(), "404 Not Found: no such user: no row"; got != want {
		t.Errorf("Error(): got %q, want %q", got, want)
	}
	if !errors.Is(p, cause) || p.StatusCode() != 404 || (&dunlin.ProblemDetails{}).StatusCode() != 500 {
		t.Error("the wrapped error has no cause or no status")
	}
	if r := dunlin.Error(p); !errors.Is(r.Err(), cause) {
		t.Errorf("Err(): got %v", r.Err())
	}
}

func TestZeroResponse(t *testing.T) {
	for name, resp := range map[string]dunlin.Response{"zero": {}, "zero with a header": dunlin.Response{}.Header("X-A", "1")} {
		app, logs := newApp(dunlin.Config{})
		app.Group("/api").Get("/things/{id}", constant(resp))
		if w := do(app, "GET", "/api/things/7"); w.Code != 500 || w.Body.String() != problem500Body || w.Header().Get("X-A") != "" {
			t.Errorf("%s: got %d %v %s", name, w.Code, w.Header(), w.Body)
		}
		wantLogged(t, logs, "zero Response", "route=/api/things/{id}", "path=/api/things/7")
	}
	if w, _ := respondWith(t, func() dunlin.Response { return dunlin.Response{}.Status(202) }); w.Code != 202 || w.Body.Len() != 0 {
		t.Errorf("zero response with a status: got %d", w.Code)
	}
}

// ownAnswer is an error that makes its own response.
type ownAnswer struct{}

func (ownAnswer) Error() string             { return "own" }
func (ownAnswer) Response() dunlin.Response { return dunlin.Text("my own").Status(418) }

// OnError is called once for each failure of any origin. Its response is sent unless another response has begun.
func TestOnError(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		seen := make(chan string, 10)
		addr, _ := start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			app.OnError(func(r *dunlin.Request, err error) dunlin.Response {
				seen <- r.Path() + " " + err.Error()
				if strings.Contains(r.Path(), "plain") {
					return dunlin.Response{}
				}
				return dunlin.Text("handled").Status(502)
			})
			teapot := &dunlin.ProblemDetails{Status: 418}
			app.Get("/fine", dunlin.Try(func(*dunlin.Request) (dunlin.Response, error) { return dunlin.Text("fine"), nil }))
			app.Get("/try", dunlin.Try(func(*dunlin.Request) (dunlin.Response, error) { return dunlin.Response{}, teapot }))
			app.Get("/plain", dunlin.Try(func(*dunlin.Request) (dunlin.Response, error) { return dunlin.Response{}, teapot }))
			app.Get("/plain/own", dunlin.Try(func(*dunlin.Request) (dunlin.Response, error) { return dunlin.Response{}, ownAnswer{} }))
			app.Get("/error", func(*dunlin.Request) dunlin.Response { return dunlin.Error(teapot) })
			app.Get("/json", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(func() {}) })
			app.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(io.Writer) error { return teapot })
			})
			app.Get("/late", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { return errors.Join(dunlin.Flush(w), teapot) })
			})
		})
		for _, c := range []struct {
			path   string
			status int
			body   string
			told   string
		}{
			{"/fine", 200, "fine", ""},
			{"/try", 502, "handled", "/try 418"},
			{"/plain", 418, `{"title":"I'm a teapot","status":418}`, "/plain 418"},
			{"/plain/own", 418, "my own", "/plain/own own"},
			{"/error", 418, `{"title":"I'm a teapot","status":418}`, "/error 418"},
			{"/json", 500, `{"title":"Internal Server Error","status":500}`, "/json JSON response"},
			{"/stream", 502, "handled", "/stream 418"},
			{"/late", 200, "", "/late 418"},
		} {
			resp, err := http.Get("http://" + addr + c.path)
			if err != nil {
				t.Fatal(err)
			}
			body, readErr := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != c.status || string(body) != c.body || (readErr != nil) != (c.path == "/late") {
				t.Errorf("%s: got %d %s, error %v", c.path, resp.StatusCode, body, readErr)
			}
			if c.told == "" {
				continue
			}
			if got := <-seen; !strings.HasPrefix(got, c.told) {
				t.Errorf("%s: OnError got %q", c.path, got)
			}
		}
		if len(seen) > 0 {
			t.Errorf("got another call of OnError: %s", <-seen)
		}
	})
}

func TestTryNil(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "nil action") {
			t.Errorf("got panic %s", v)
		}
	}()
	dunlin.New(dunlin.Config{}).Get("/", dunlin.Try(nil))
}
