package suite

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// statusError is an error in the format of Google's APIs.
type statusError struct {
	Error struct {
		Code    int      `json:"code"`
		Message string   `json:"message"`
		Status  string   `json:"status"`
		Details []string `json:"details"`
	} `json:"error"`
}

var statusErrors = dunlin.FormatProblems("application/json", func(info *dunlin.AnswerInfo, p *dunlin.ProblemDetails) (e statusError) {
	e.Error.Code, e.Error.Message = p.Status, p.Title
	if p.Detail != "" {
		e.Error.Message = p.Detail
	}
	e.Error.Status = info.Source().String()
	return e
})

// conduitError is an error in the format of the RealWorld API.
type conduitError struct {
	Errors struct {
		Body []string `json:"body"`
	} `json:"errors"`
}

// documentErrors are errors in the format of JSON:API.
type documentErrors struct {
	Errors []documentError `json:"errors"`
}

type documentError struct {
	Status string `json:"status"`
	Title  string `json:"title"`
}

func TestProblemFormats(t *testing.T) {
	for _, c := range []struct {
		name   string
		format *dunlin.ProblemFormat
		want   string // media type and body
	}{
		{"RFC 9457", nil, `application/problem+json {"title":"Not Found","status":404}`},
		{"Google", statusErrors, `application/json {"error":{"code":404,"message":"Not Found","status":"app","details":[]}}`},
		{"RealWorld", dunlin.FormatProblems("application/json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) (e conduitError) {
			e.Errors.Body = []string{p.Title}
			return e
		}), `application/json {"errors":{"body":["Not Found"]}}`},
		{"JSON:API", dunlin.FormatProblems("application/vnd.api+json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) documentErrors {
			return documentErrors{[]documentError{{fmt.Sprint(p.Status), p.Title}}}
		}), `application/vnd.api+json {"errors":[{"status":"404","title":"Not Found"}]}`},
		{"no value", dunlin.FormatProblems("application/json", func(*dunlin.AnswerInfo, *dunlin.ProblemDetails) any { return nil }), `application/json null`},
		{"panic", dunlin.FormatProblems("application/json", func(*dunlin.AnswerInfo, *dunlin.ProblemDetails) any { panic("in the format") }),
			`application/problem+json {"title":"Not Found","status":404}`},
		{"invalid value", dunlin.FormatProblems("application/json", func(*dunlin.AnswerInfo, *dunlin.ProblemDetails) any { return func() {} }),
			`application/problem+json {"title":"Not Found","status":404}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
				addr, logs := Start(t, dunlin.Config{Engine: engine, Problems: c.format}, func(app *dunlin.App) {})
				resp, body := askStd(t, "GET", "http://"+addr+"/nowhere", "")
				if got := resp.Header.Get("Content-Type") + " " + body; got != c.want || resp.StatusCode != 404 || resp.ContentLength != int64(len(body)) {
					t.Errorf("got %d %s, want 404 %s", resp.StatusCode, got, c.want)
				}
				head, body := askStd(t, "HEAD", "http://"+addr+"/nowhere", "")
				if head.StatusCode != 404 || body != "" || head.ContentLength != resp.ContentLength && head.ContentLength >= 0 || head.Header.Get("Content-Type") != resp.Header.Get("Content-Type") {
					t.Errorf("HEAD: got %d %q, %d bytes of %q", head.StatusCode, body, head.ContentLength, head.Header.Get("Content-Type"))
				}
				if strings.HasPrefix(c.name, "panic") || strings.HasPrefix(c.name, "invalid") {
					WantLogged(t, logs, "format of problems")
				}
			})
		})
	}
	for _, invalid := range []func(){
		func() { dunlin.FormatProblems[any]("application/json", nil) },
		func() {
			dunlin.FormatProblems("json; x", func(*dunlin.AnswerInfo, *dunlin.ProblemDetails) any { return nil })
		},
	} {
		WantContains(t, "panic", PanicText(invalid), "FormatProblems", "problems_test.go")
	}
}

// Each layer of middleware may format a problem, so a format that fails would be called again by each.
func TestFailingProblemFormatIsLoggedOnce(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		fails := dunlin.FormatProblems("application/json", func(*dunlin.AnswerInfo, *dunlin.ProblemDetails) any { panic("in the format") })
		addr, logs := Start(t, dunlin.Config{Engine: engine, Problems: fails}, func(app *dunlin.App) {
			app.Get("/inside", Constant(dunlin.NotFound()), markStatus("Inner"), markStatus("Outer"))
			app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("after the first request") })
		})
		if resp, _ := askStd(t, "GET", "http://"+addr+"/inside", ""); resp.StatusCode != 404 {
			t.Errorf("status %d", resp.StatusCode)
		}
		_, _ = askStd(t, "GET", "http://"+addr+"/panic", "")
		WantLogged(t, logs, "after the first request") // and so all records of the first request
		before, _, _ := strings.Cut(logs.String(), "after the first request")
		if n := strings.Count(before, "panic in the format of problems"); n != 1 {
			t.Errorf("the failure was logged %d times for one request", n)
		}
	})
}

// TestProblemFormatOfAllAnswers requests a problem of each origin, with middleware around the routes and without.
func TestProblemFormatOfAllAnswers(t *testing.T) {
	for name, around := range map[string][]dunlin.Middleware{
		"alone": nil,
		"behind middleware": {middleware.Compress(middleware.CompressConfig{MinSize: 1}), middleware.RequestID("X-Request-ID").Middleware(), func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response { return next(r) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			OnEngines(t, func(t *testing.T, engine dunlin.Engine) { askForProblems(t, engine, around) })
		})
	}
}

func askForProblems(t *testing.T, engine dunlin.Engine, around []dunlin.Middleware) {
	held, release := NewGate(), make(chan struct{})
	addr, _ := Start(t, dunlin.Config{
		Engine: engine, Logger: slog.New(slog.DiscardHandler), UncleanPaths: dunlin.UncleanPathsRefuse, Limits: dunlin.Limits{MaxBody: 100}, Problems: statusErrors,
	}, func(app *dunlin.App) {
		app.Use(around...)
		app.Install(middleware.RequestID("X-Request-ID"))
		registerProblems(app, held, release)
	})
	defer close(release)
	for _, path := range []string{"/limit", "/limit/client"} {
		defer AskConn(t, addr, Request("GET "+path)).Close()
		held.Await(t)
		defer func() { held.Open <- struct{}{} }()
	}
	if engine == dunlin.EngineLoop { // net/http drops the connection
		want := `{"error":{"code":500,"message":"Internal Server Error","status":"panic","details":[]}}`
		if resp, body := askStd(t, "GET", "http://"+addr+"/exit", ""); body != want || resp.Header.Get("X-Request-ID") == "" {
			t.Errorf("an action that ends its goroutine: %s %v", body, resp.Header)
		}
	}
	for _, c := range []struct {
		request, body string
		status        int
		message       string
		source        string
		header        string
	}{
		{"GET /problem", "", 409, "taken", "action", "X-Own: 1"},
		{"GET /error", "", 500, "Internal Server Error", "action", ""},
		{"GET /other/status", "", 410, "Gone", "action", ""},
		{"GET /temporary", "", 503, "Service Unavailable", "action", "Retry-After: 1"},
		{"GET /login", "", 401, "Unauthorized", "action", "WWW-Authenticate: Basic"},
		{"GET /none", "", 500, "Internal Server Error", "action", ""},
		{"GET /unencodable", "", 500, "Internal Server Error", "action", ""},
		{"GET /panic", "", 500, "Internal Server Error", "panic", ""},
		{"GET /late", "", 503, "the request took too long", "timeout", ""},
		{"GET /limit", "", 503, "too many concurrent requests for this resource: the limit is 1", "limit", "Retry-After: 1"},
		{"GET /limit/client", "", 429, "too many concurrent requests from this client: the limit is 1", "limit", "Retry-After: 1"},
		{"GET /stream", "", 409, "Conflict", "action", ""},
		{"GET /file", "", 404, "Not Found", "action", ""},
		{"GET /std/panic", "", 500, "Internal Server Error", "panic", ""},
		{"GET /behind/std/problem", "", 409, "taken", "action", ""},
		{"GET /behind/std/panic", "", 500, "Internal Server Error", "panic", ""},
		{"GET /nowhere", "", 404, "Not Found", "app", ""},
		{"DELETE /problem", "", 405, "the path takes GET, HEAD, OPTIONS, not DELETE", "app", "Allow: GET, HEAD, OPTIONS"},
		{"GET //problem", "", 400, "the path has an empty segment, or one that is «.» or «..»", "app", ""},
		{"GET /version", "", 406, "the path exists, but not in a version that Accept requests", "app", "Vary: Accept"},
		{"POST /body", strings.Repeat("x", 200), 413, "the request body is larger than the limit of 100 bytes", "action", ""},
		{"POST /std/body", strings.Repeat("x", 200), 413, "the request body is larger than the limit of 10 bytes", "action", ""},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		resp, body := askStd(t, method, "http://"+addr+path, c.body, "Accept-Encoding", "gzip", "Accept", "application/vnd.x.v9+json", "X-Request-ID", "the-id")
		body = decoded(t, resp.Header, body)
		want := fmt.Sprintf(`{"error":{"code":%d,"message":"%s","status":"%s","details":[]}}`, c.status, c.message, c.source)
		if resp.StatusCode != c.status || body != want || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d %s %s, want %s", c.request, resp.StatusCode, resp.Header.Get("Content-Type"), body, want)
		}
		if id := resp.Header.Values("X-Request-ID"); len(id) != 1 || c.source != "panic" && c.source != "timeout" && id[0] != "the-id" {
			t.Errorf("%s: the feature's header is %q", c.request, id)
		}
		if name, value, _ := strings.Cut(c.header, ": "); name != "" && !strings.Contains(strings.Join(resp.Header.Values(name), ", "), value) {
			t.Errorf("%s: no %s in %v", c.request, c.header, resp.Header)
		}
	}
}

func registerProblems(app *dunlin.App, held *Gate, release chan struct{}) {
	taken := &dunlin.ProblemDetails{Status: 409, Detail: "taken"}
	fail := func(*dunlin.Request) dunlin.Response { panic("it") }
	app.Get("/problem", func(*dunlin.Request) dunlin.Response { return dunlin.Error(taken).Header("X-Own", "1") })
	app.Get("/error", dunlin.Try(func(*dunlin.Request) (dunlin.Response, error) { return dunlin.Response{}, errors.New("secret") }))
	app.Get("/other/status", func(*dunlin.Request) dunlin.Response { return dunlin.NotFound().Status(410) })
	app.Get("/temporary", func(*dunlin.Request) dunlin.Response {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: 503, Temporary: true})
	})
	app.Get("/login", func(*dunlin.Request) dunlin.Response {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: 401}).Header("WWW-Authenticate", "Basic")
	})
	app.Get("/none", func(*dunlin.Request) dunlin.Response { return dunlin.Response{} })
	app.Get("/unencodable", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(make(chan int)) })
	app.Get("/panic", fail)
	app.Get("/exit", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); return dunlin.Empty() })
	app.Get("/late", func(*dunlin.Request) dunlin.Response { <-release; return dunlin.Error(taken) }).Timeout(10 * time.Millisecond)
	wait := func(*dunlin.Request) dunlin.Response { held.Pass(); return dunlin.Text("held") }
	app.Get("/limit", wait).Limit(1)
	app.Get("/limit/client", wait).LimitBy(nil, 1)
	app.Get("/stream", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/plain", func(io.Writer) error { return &dunlin.ProblemDetails{Status: 409} })
	})
	app.Get("/file", func(*dunlin.Request) dunlin.Response { return dunlin.FS(fstest.MapFS{}, "none") })
	app.Get("/std/panic", dunlin.FromStd(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("it") })))
	app.Post("/std/body", dunlin.FromStd(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))).MaxBody(10)
	behind := app.Group("/behind/std")
	behind.UseStd(passOn)
	behind.Get("/problem", func(*dunlin.Request) dunlin.Response { return dunlin.Error(taken) })
	behind.Get("/panic", fail)
	app.Version("v1").Get("/version", Text("one"))
	app.Post("/body", func(r *dunlin.Request) dunlin.Response {
		_, err := r.Bytes()
		return dunlin.Error(err)
	})
}

// TestProblemFormatOfRefusalsByMiddleware checks a problem of middleware that other middleware compresses.
func TestProblemFormatOfRefusalsByMiddleware(t *testing.T) {
	app, _ := NewApp(dunlin.Config{Problems: statusErrors})
	app.Use(middleware.Compress(middleware.CompressConfig{MinSize: 1}), middleware.RateLimit(middleware.RateLimitConfig{Limit: 1, Window: time.Hour}).Middleware())
	app.Get("/", Text("ok"))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	w = httptest.NewRecorder()
	app.ServeHTTP(w, r)
	if body := decoded(t, w.Header(), w.Body.String()); w.Code != 429 || !strings.HasPrefix(body, `{"error":{"code":429,`) || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s", w.Code, body)
	}
}

// decoded returns the body of an answer without its coding.
func decoded(t *testing.T, head http.Header, body string) string {
	t.Helper()
	if head.Get("Content-Encoding") != "gzip" {
		return body
	}
	decoder, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(decoder)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// Responses that middleware, a handler or an error has made itself are not problems.
func TestProblemFormatKeepsOtherBodies(t *testing.T) {
	app, _ := NewApp(dunlin.Config{Problems: statusErrors})
	app.Get("/text", func(*dunlin.Request) dunlin.Response { return dunlin.Text("own").Status(404) })
	app.Get("/body", func(*dunlin.Request) dunlin.Response { return dunlin.NotFound().WithBody([]byte("own")) })
	app.Get("/own", func(*dunlin.Request) dunlin.Response {
		return dunlin.Error(ownAnswer{&dunlin.ProblemDetails{Status: 404}})
	})
	app.Mount("/std", http.NotFoundHandler())
	for path, want := range map[string]string{"/text": "own", "/body": "own", "/own": "own", "/std": "404 page not found\n"} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Body.String() != want || w.Code != 404 {
			t.Errorf("%s: got %d %q, want %q", path, w.Code, w.Body, want)
		}
	}
}

// ownAnswer is an error with its own response, although it wraps a problem.
type ownAnswer struct{ error }

func (ownAnswer) Response() dunlin.Response { return dunlin.Text("own").Status(404) }
func (e ownAnswer) Unwrap() error           { return e.error }
