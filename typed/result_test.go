package typed_test

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

type item struct {
	ID   int      `json:"id"`
	Tags []string `json:"tags"`
}

// give registers an action without input that returns out and err.
func give[Out any](app *dunlin.App, pattern string, out Out, err error) *typed.Op[struct{}, Out] {
	return typed.Get(app, pattern, func(*dunlin.Request, struct{}) (Out, error) { return out, err })
}

type page struct {
	Total int    `header:"X-Total-Count"`
	Next  string `header:"Link,omitzero"`
	Body  []item
}

func TestResults(t *testing.T) {
	app := quiet()
	give(app, "/plain", item{ID: 1}, nil)
	give(app, "/nil", []item(nil), nil)
	give(app, "/map", map[string][]byte{"a": nil}, nil)
	give(app, "/text", "x", nil)
	give(app, "/none", typed.None{}, nil)
	give(app, "/created", typed.Created[item]{Location: "/items/1", Body: item{ID: 1}}, nil)
	give(app, "/nowhere", typed.Created[item]{}, nil)
	give(app, "/accepted", typed.Accepted[typed.None]{Location: "/jobs/1"}, nil)
	give(app, "/page", page{Total: 3, Body: []item{{ID: 2}}}, nil)
	give(app, "/first", typed.First[item, typed.Created[item]](item{ID: 1}), nil)
	give(app, "/second", typed.Second[item](typed.Created[item]{Location: "/x"}), nil)
	give(app, "/neither", typed.Either[item, typed.None]{}, nil)
	give(app, "/raw", dunlin.Text("hi").Status(203), nil)
	give(app, "/seq", typed.Seq[item](func(yield func(item, error) bool) {
		_ = yield(item{ID: 1}, nil) && yield(item{ID: 2}, nil)
	}), nil)
	give(app, "/seq2", iter.Seq2[int, error](func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, nil) }), nil)
	give(app, "/emptyseq", typed.Seq[int](func(func(int, error) bool) {}), nil)
	give(app, "/nilseq", typed.Seq[int](nil), nil)
	give(app, "/failing", typed.Seq[int](func(yield func(int, error) bool) { _ = yield(1, nil) && yield(0, typed.NotFound) }), nil)
	give(app, "/lines", typed.Lines[item](func(yield func(item, error) bool) {
		_ = yield(item{ID: 1}, nil) && yield(item{ID: 2}, nil)
	}), nil)
	give(app, "/failingline", typed.Lines[int](func(yield func(int, error) bool) { yield(0, typed.NotFound) }), nil)
	give(app, "/events", typed.EventsOf[item](func(e *typed.Emitter[item]) error {
		return errors.Join(e.Emit(item{ID: 1}), e.EmitAs(dunlin.Event{Type: "last", ID: "2"}, item{ID: 2}))
	}), nil)
	for _, c := range []struct {
		path    string
		status  int
		kind    string
		body    string
		headers string
	}{
		{"/plain", 200, "application/json", `{"id":1,"tags":[]}`, ""},
		{"/nil", 200, "application/json", `[]`, ""},
		{"/map", 200, "application/json", `{"a":""}`, ""},
		{"/text", 200, "application/json", `"x"`, ""},
		{"/none", 204, "", ``, ""},
		{"/created", 201, "application/json", `{"id":1,"tags":[]}`, "Location=/items/1"},
		{"/nowhere", 201, "application/json", `{"id":0,"tags":[]}`, "Location="},
		{"/accepted", 202, "", ``, "Location=/jobs/1"},
		{"/page", 200, "application/json", `[{"id":2,"tags":[]}]`, "X-Total-Count=3;Link="},
		{"/first", 200, "application/json", `{"id":1,"tags":[]}`, ""},
		{"/second", 201, "application/json", `{"id":0,"tags":[]}`, "Location=/x"},
		{"/neither", 500, "application/problem+json", `{"title":"Internal Server Error","status":500}`, ""},
		{"/raw", 203, "text/plain; charset=utf-8", `hi`, ""},
		{"/seq", 200, "application/json", `[{"id":1,"tags":[]},{"id":2,"tags":[]}]`, ""},
		{"/seq2", 200, "application/json", `[1,2]`, ""},
		{"/emptyseq", 200, "application/json", `[]`, ""},
		{"/nilseq", 200, "application/json", `[]`, ""},
		{"/failing", 404, "application/problem+json", `{"type":"not-found","title":"The resource does not exist","status":404}`, ""},
		{"/lines", 200, "application/jsonl", "{\"id\":1,\"tags\":[]}\n{\"id\":2,\"tags\":[]}", ""},
		{"/failingline", 404, "application/problem+json", `{"type":"not-found","title":"The resource does not exist","status":404}`, ""},
		{"/events", 200, "text/event-stream", "data: {\"id\":1,\"tags\":[]}\n\nevent: last\nid: 2\ndata: {\"id\":2,\"tags\":[]}", ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			a := ask(t, app, "GET "+c.path)
			expect(t, a, c.status, c.body)
			if kind := a.header.Get("Content-Type"); kind != c.kind {
				t.Errorf("got Content-Type %q, want %q", kind, c.kind)
			}
			for pair := range strings.SplitSeq(c.headers, ";") {
				if name, value, _ := strings.Cut(pair, "="); name != "" && a.header.Get(name) != value {
					t.Errorf("%s: got %q, want %q", name, a.header.Get(name), value)
				}
			}
		})
	}
}

var (
	taken   = typed.NewFault(409, "email-taken", "The address is taken")
	unheard = typed.NewFault(418, "teapot", "It is a teapot")
)

func TestFaults(t *testing.T) {
	app := quiet()
	typed.Configure(app, typed.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	give(app, "/declared", typed.None{}, taken.With("by you").WithCause(errors.New("secret")).Member("since", 3)).Faults(taken)
	give(app, "/undeclared", typed.None{}, unheard).Name("tea")
	give(app, "/problem", typed.None{}, &dunlin.ProblemDetails{Status: 410}).Returns(410, nil)
	give(app, "/other", typed.None{}, &dunlin.ProblemDetails{Status: 451})
	give(app, "/plain", typed.None{}, io.ErrUnexpectedEOF)
	expect(t, ask(t, app, "GET /declared"), 409, `{"type":"email-taken","title":"The address is taken","status":409,"detail":"by you","since":3}`)
	expect(t, ask(t, app, "GET /undeclared"), 418, `{"type":"teapot","title":"It is a teapot","status":418}`)
	ask(t, app, "GET /undeclared")
	give(app, "/later", typed.None{}, typed.ServiceUnavailable).Faults(typed.ServiceUnavailable)
	if got := ask(t, app, "GET /later").header.Get("Retry-After"); got != "1" {
		t.Errorf("got Retry-After %q", got)
	}
	expect(t, ask(t, app, "GET /problem"), 410, `{"title":"Gone","status":410}`)
	expect(t, ask(t, app, "GET /other"), 451, `{"title":"Unavailable For Legal Reasons","status":451}`)
	expect(t, ask(t, app, "GET /plain"), 500, `{"title":"Internal Server Error","status":500}`)
	got := typed.UndeclaredFaults(app)
	if len(got) != 2 || got[0] != (typed.Undeclared{Operation: "GET /other", Status: 451, Count: 1}) ||
		got[1] != (typed.Undeclared{Operation: "tea", Fault: "teapot", Status: 418, Count: 2}) {
		t.Errorf("undeclared faults: got %+v", got)
	}
	if !errors.Is(taken.With("x"), taken) || errors.Is(taken, unheard) || taken.With("x").Error() != "409 The address is taken: x" {
		t.Error("errors.Is does not match a fault with a detail")
	}
}

func statuses(o interface{ Answers() []typed.Answer }) string {
	var list []string
	for _, a := range o.Answers() {
		list = append(list, http.StatusText(a.Status))
	}
	return strings.Join(list, ", ")
}

// Concurrent registrations on different apps do not mix their declarations.
func TestDeclarationsOfConcurrentRegistrations(t *testing.T) {
	var all sync.WaitGroup
	for status := 420; status < 428; status++ {
		all.Go(func() {
			app := quiet()
			pause := func(next dunlin.Action) dunlin.Action { runtime.Gosched(); return next }
			api := app.Group("/api", typed.Declares(pause, typed.Status{Code: status, Description: "own"}), pause)
			for n := range 50 {
				op := typed.Get(api, fmt.Sprint("/", n), func(*dunlin.Request, struct{}) (item, error) { return item{}, nil })
				var own []int
				for _, a := range op.Answers() {
					if a.Status >= 420 && a.Status < 428 {
						own = append(own, a.Status)
					}
				}
				if len(own) != 1 || own[0] != status {
					t.Errorf("operation that declares status %d: got %v", status, own)
				}
			}
		})
	}
	all.Wait()
}

func TestEveryStatusIsDerived(t *testing.T) {
	app := quiet()
	bearer := typed.BearerAuth("bearer", "JWT")
	plain := give(app, "/plain", item{}, nil)
	if got, want := statuses(plain), "OK, Internal Server Error, Service Unavailable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	cached := func(next dunlin.Action) dunlin.Action { return next }
	api := app.Group("/api", typed.Declares(cached, typed.Status{Code: 304, Description: "Not modified"}, typed.Requires(bearer, "admin"), taken)).Version("v2")
	op := typed.Put(api, "/{id:int}", func(*dunlin.Request, struct {
		ID   int `path:"id"`
		Body item
	}) (typed.Either[item, typed.Created[item]], error) {
		return typed.First[item, typed.Created[item]](item{}), nil
	}).Faults(unheard)
	op.Route().LimitBy(nil, 3)
	if got, want := statuses(op), "OK, Created, Not Modified, Bad Request, Unauthorized, Forbidden, Not Found, Not Acceptable, Request Timeout, Conflict, "+
		"Request Entity Too Large, Unsupported Media Type, I'm a teapot, Too Many Requests, Internal Server Error, Service Unavailable"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	other := give(app, "/other", item{}, nil)
	if got := statuses(other); strings.Contains(got, "Not Modified") {
		t.Errorf("operation of another group has the declarations of this middleware: got %s", got)
	}
}
