package typed_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// quiet returns an app without a log.
func quiet() *dunlin.App { return dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}) }

// answer is a response as a client sees it.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request to the app: "POST /path", headers as "Name: value", and after an empty string the body.
func ask(t testing.TB, app http.Handler, line string, rest ...string) answer {
	t.Helper()
	method, target, _ := strings.Cut(line, " ")
	var body io.Reader
	var headers []string
	for i, s := range rest {
		if s == "" {
			body = strings.NewReader(strings.Join(rest[i+1:], ""))
			break
		}
		headers = append(headers, s)
	}
	r := httptest.NewRequest(method, target, body)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// post sends JSON.
func post(t testing.TB, app http.Handler, target, body string) answer {
	t.Helper()
	return ask(t, app, "POST "+target, "Content-Type: application/json", "", body)
}

// violations returns the violations of a problem, as "in parameter pointer rule limit".
func (a answer) violations(t testing.TB) []string {
	t.Helper()
	var p struct {
		Errors []typed.Violation `json:"errors"`
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("the answer is not a problem: got %v\n%d %s", err, a.status, a.body)
	}
	var list []string
	for _, v := range p.Errors {
		s := v.In
		for _, part := range []string{v.Name, v.Pointer, v.Rule, v.Limit} {
			if part != "" {
				s += " " + part
			}
		}
		list = append(list, s)
	}
	return list
}

// sink registers an action that takes an input and answers without content.
func sink[In any](app *dunlin.App, method, pattern string) *typed.Op[In, typed.None] {
	return typed.Handle(app, method, pattern, func(*dunlin.Request, In) (typed.None, error) { return typed.None{}, nil })
}

// panics returns the value of f's panic, or "" if f does not panic.
func panics(f func()) (message string) {
	defer func() {
		if v := recover(); v != nil {
			message, _ = v.(string)
		}
	}()
	f()
	return ""
}

func expect(t *testing.T, got answer, status int, body string) {
	t.Helper()
	if got.status != status || strings.TrimSpace(got.body) != body {
		t.Errorf("got %d %s\nwant %d %s", got.status, got.body, status, body)
	}
}

func expectViolations(t *testing.T, got answer, want ...string) {
	t.Helper()
	expectInvalid(t, got, 400, want...)
}

// expectInvalid is expectViolations for another status.
func expectInvalid(t *testing.T, got answer, status int, want ...string) {
	t.Helper()
	if list := strings.Join(got.violations(t), "\n"); list != strings.Join(want, "\n") || got.status != status {
		t.Errorf("got %d\n%s\nwant %d\n%s\n%s", got.status, list, status, strings.Join(want, "\n"), got.body)
	}
	if ct := got.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("got Content-Type %q", ct)
	}
}
