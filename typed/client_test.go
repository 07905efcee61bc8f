package typed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// allSources is an input with a field of every source.
type allSources struct {
	Tenant string                          `path:"tenant"`
	ID     int64                           `path:"id"`
	Rest   string                          `path:"rest"`
	Q      string                          `query:"q" default:"d"`
	List   []string                        `query:"list"`
	Comma  []string                        `query:"comma,comma"`
	At     typed.Optional[time.Time]       `query:"at"`
	Wait   *time.Duration                  `query:"wait"`
	Ratio  float64                         `header:"X-Ratio" default:"0"`
	Many   []int                           `header:"X-Many"`
	SID    string                          `cookie:"sid"`
	Body   typed.Optional[map[string]item] `doc:"what is sent"`
}

type formInput struct {
	Name string                     `form:"name"`
	Tags []string                   `form:"tag"`
	Opt  typed.Optional[int]        `form:"opt"`
	File typed.Optional[typed.File] `form:"file"`
	More []typed.File               `form:"more"`
}

// mirror registers an action that stores its input, and returns a pointer to the stored input.
func mirror[In any](g typed.Router, method, pattern string) (*typed.Op[In, typed.None], *In) {
	got := new(In)
	return typed.Handle(g, method, pattern, func(_ *dunlin.Request, in In) (typed.None, error) {
		*got = in
		return typed.None{}, nil
	}), got
}

// A plan decodes the requests that a client has encoded.
func TestRoundTrip(t *testing.T) {
	app := quiet()
	op, got := mirror[allSources](app.Host("{tenant}.example.com"), "POST", "/a/{id:int}/{rest...}")
	wait := 90 * time.Second
	for _, in := range []allSources{
		{Tenant: "acme", ID: -7, Rest: "x/y z/%", Q: "a&b=c+d é", List: []string{"1", "2 3"}, Comma: []string{"a,b", "c"}, At: typed.OptionalOf(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)),
			Wait: &wait, Ratio: 1e-9, Many: []int{1, 2}, SID: "s", Body: typed.OptionalOf(map[string]item{"k": {ID: 1, Tags: []string{"t"}}})},
		{Tenant: "b", Rest: "", Q: "d", SID: "x"},
	} {
		if x := op.Test(t, app, in); x.Status != 204 {
			t.Fatalf("got %d %s", x.Status, x.Body)
		}
		if !reflect.DeepEqual(*got, in) {
			t.Errorf("sent %+v\ngot  %+v", in, *got)
		}
	}
	gotForm := new(formInput)
	forms := typed.Post(app, "/form", func(_ *dunlin.Request, in formInput) (typed.None, error) {
		in.File.Value.Data = slices.Clone(in.File.Value.Data) // files are borrowed
		for i := range in.More {
			in.More[i].Data = slices.Clone(in.More[i].Data)
		}
		*gotForm = in
		return typed.None{}, nil
	})
	for _, in := range []formInput{
		{Name: "é&", Tags: []string{"a", "b"}, Opt: typed.OptionalOf(3), File: typed.OptionalOf(typed.File{Name: "a.txt", ContentType: "text/plain", Data: []byte("1\r\n--2")}),
			More: []typed.File{{Name: "b", ContentType: "a/b", Data: []byte("x")}}},
		{Name: "n"},
	} {
		if x := forms.Test(t, app, in); x.Status != 204 {
			t.Fatalf("got %d %s", x.Status, x.Body)
		}
		if !reflect.DeepEqual(*gotForm, in) {
			t.Errorf("sent %+v\ngot  %+v", in, *gotForm)
		}
	}
}

// failures is a testing.TB that counts failures.
type failures struct{ list []string }

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}
func (f *failures) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

type badly struct {
	Name string `json:"name" minLength:"3"`
}

// Op.Test reports responses that the document does not declare.
func TestOpTestFindsUndeclaredAnswers(t *testing.T) {
	app := quiet()
	typed.Configure(app, typed.Config{Logger: slog.New(slog.DiscardHandler)})
	status := func(code int) dunlin.Middleware {
		return func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response { return next(r).Status(code) }
		}
	}
	for _, c := range []struct {
		name string
		run  func(t typed.TestingT)
		want string // "" for no failure
	}{
		{"fine", func(t typed.TestingT) { give(app, "/fine", badly{"abc"}, nil).Test(t, app, struct{}{}) }, ""},
		{"declared", func(t typed.TestingT) { give(app, "/declared", badly{}, taken).Faults(taken).Test(t, app, struct{}{}) }, ""},
		{"undeclared fault", func(t typed.TestingT) { give(app, "/undeclared", badly{}, unheard).Test(t, app, struct{}{}) }, "an undeclared error"},
		{"undeclared fault of a declared status", func(t typed.TestingT) {
			give(app, "/other", badly{}, typed.NewFault(503, "other", "Other")).Test(t, app, struct{}{})
		}, "an undeclared error"},
		{"rule broken", func(t typed.TestingT) { give(app, "/rule", badly{"a"}, nil).Test(t, app, struct{}{}) }, "#/name must have at least 3 characters"},
		{"status of middleware", func(t typed.TestingT) {
			typed.Get(app, "/middleware", func(*dunlin.Request, struct{}) (badly, error) { return badly{"abc"}, nil }, status(202)).Test(t, app, struct{}{})
		}, "does not have the status 202"},
		{"status that middleware declares", func(t typed.TestingT) {
			typed.Get(app, "/declares", func(*dunlin.Request, struct{}) (typed.None, error) { return typed.None{}, nil },
				typed.Declares(status(404), typed.NotFound)).Test(t, app, struct{}{})
		}, "is of type"},
		{"media type", func(t typed.TestingT) {
			give(app, "/text", dunlin.Text("x"), nil).Returns(200, "").Test(t, app, struct{}{})
		}, `is of type "text/plain"`},
		{"any media type", func(t typed.TestingT) {
			give(app, "/any", dunlin.Text("x"), nil).ReturnsBytes(200, "*/*").Test(t, app, struct{}{})
		}, ""},
		{"range of media types", func(t typed.TestingT) {
			give(app, "/texts", dunlin.Text("x"), nil).ReturnsBytes(200, "text/*").Test(t, app, struct{}{})
		}, ""},
		{"other range of media types", func(t typed.TestingT) {
			give(app, "/pictures", dunlin.Text("x"), nil).ReturnsBytes(200, "image/*").Test(t, app, struct{}{})
		}, `is of type "text/plain", but in the document of type "image/*"`},
		{"no media type with a range", func(t typed.TestingT) {
			give(app, "/untyped", dunlin.Text("x").Header("Content-Type", ""), nil).ReturnsBytes(200, "*/*").Test(t, app, struct{}{})
		}, "is of type"},
		{"media type with a parameter", func(t typed.TestingT) {
			give(app, "/utf8", dunlin.Text("x"), nil).ReturnsBytes(200, "text/plain; charset=utf-8").Test(t, app, struct{}{})
		}, ""},
		{"wrong status", func(t typed.TestingT) { give(app, "/none", dunlin.Text("x"), nil).Test(t, app, struct{}{}) }, "does not have the status 200"},
		{"line", func(t typed.TestingT) {
			give(app, "/lines", typed.Lines[badly](func(yield func(badly, error) bool) { _ = yield(badly{"abc"}, nil) && yield(badly{"a"}, nil) }), nil).Test(t, app, struct{}{})
		}, "#/name must have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f failures
			c.run(&f)
			if got := strings.Join(f.list, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got failures %q, want %q", got, c.want)
			}
		})
	}
}

func TestOpTestReturns(t *testing.T) {
	app := quiet()
	op := typed.Post(app, "/", func(_ *dunlin.Request, in struct{ Body newUser }) (typed.Created[item], error) {
		if in.Body.Name == "taken" {
			return typed.Created[item]{}, taken
		}
		return typed.Created[item]{Location: "/7", Body: item{ID: 7, Tags: in.Body.Tags}}, nil
	}).Faults(taken)
	in := struct{ Body newUser }{newUser{Name: "n", Mail: "a@b.example", Tags: []string{"x"}}}
	x := op.Test(t, app, in)
	if x.Status != 201 || x.Out.Location != "/7" || x.Out.Body.ID != 7 || x.Problem != nil {
		t.Errorf("got %+v", x)
	}
	in.Body.Name = "taken"
	if x = op.Test(t, app, in); x.Status != 409 || !errors.Is(x.Problem, taken) || errors.Is(x.Problem, unheard) {
		t.Errorf("got %+v", x)
	}
	in.Body.Name, in.Body.Age = "", 151
	if x = op.Test(t, app, in); x.Status != 400 || len(x.Problem.Errors) != 2 || x.Problem.Errors[1].Pointer != "#/age" {
		t.Errorf("got %+v", x.Problem)
	}
	if !strings.Contains(x.Problem.Error(), "400 Bad Request: the request is invalid in 2 places; body #/name must have at least 1 character") {
		t.Errorf("got problem %s", x.Problem)
	}
}

// Tests and clients identify a fault also in a format that has no member for it, with middleware that adds another Link, and
// after a proxy has joined the Link fields.
func TestFaultsInProblemFormats(t *testing.T) {
	type envelope struct {
		Error string `json:"error"`
	}
	app := dunlin.New(dunlin.Config{
		Logger: slog.New(slog.DiscardHandler),
		Problems: dunlin.FormatProblems("application/json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) envelope {
			return envelope{p.Title}
		}),
	})
	app.Use(func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			return next(r).AddHeader("Link", `</help>; rel="help"`)
		}
	})
	taken, gone := typed.NewFault(409, "https://example.com/problems?is=taken,now", "It is taken"), typed.NewFault(409, "gone", "It is gone")
	spaced := typed.NewFault(409, "not a > URI", "Its name is no URI")
	op := typed.Post(app, "/items", func(_ *dunlin.Request, in struct {
		Kind int `query:"kind"`
	}) (typed.None, error) {
		return typed.None{}, []error{nil, taken.With("why"), gone, spaced}[in.Kind]
	}).Faults(taken, gone, spaced)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		app.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		w.Header().Set("Link", strings.Join(rec.Header().Values("Link"), ", "))
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes())
	}))
	defer server.Close()
	for kind, want := range []*typed.Fault{nil, taken, gone, nil} {
		in := struct {
			Kind int `query:"kind"`
		}{kind}
		_, called := op.Endpoint().Call(context.Background(), &typed.Client{Base: server.URL}, in)
		x := op.Test(t, app, in)
		for _, f := range []*typed.Fault{taken, gone, spaced} {
			if is := f == want; errors.Is(x.Problem, f) != is || errors.Is(called, f) != is {
				t.Errorf("%d: problem %+v and error %v: wrong result of errors.Is with %s", kind, x.Problem, called, f.ID())
			}
		}
	}
}

func TestClient(t *testing.T) {
	app := quiet()
	type find struct {
		ID int `path:"id"`
	}
	typed.Get(app, "/api/items/{id}", func(r *dunlin.Request, in find) (typed.Either[item, typed.Created[item]], error) {
		switch {
		case r.Header("Authorization") != "token":
			return typed.Either[item, typed.Created[item]]{}, typed.Unauthorized
		case in.ID == 1:
			return typed.First[item, typed.Created[item]](item{ID: 1}), nil
		}
		return typed.Second[item](typed.Created[item]{Location: "/2", Body: item{ID: 2}}), nil
	}).Faults(typed.Unauthorized)
	typed.Get(app, "/api/lines", func(*dunlin.Request, struct{}) (typed.Lines[item], error) {
		return func(yield func(item, error) bool) { _ = yield(item{ID: 1}, nil) && yield(item{ID: 2}, nil) }, nil
	})
	server := httptest.NewServer(app)
	defer server.Close()
	items := typed.NewEndpoint[find, typed.Either[item, typed.Created[item]]]("GET", "/items/{id}")
	c := &typed.Client{Base: server.URL + "/api", Edit: func(r *http.Request) { r.Header.Set("Authorization", "token") }}
	got, err := items.Call(context.Background(), c, find{1})
	if one, two := got.Get(); err != nil || one == nil || one.ID != 1 || two != nil {
		t.Errorf("got %+v, error %v", got, err)
	}
	got, err = items.Call(context.Background(), c, find{2})
	if one, two := got.Get(); err != nil || one != nil || two == nil || two.Location != "/2" || two.Body.ID != 2 {
		t.Errorf("got %+v, error %v", got, err)
	}
	if _, err = items.Call(context.Background(), &typed.Client{Base: c.Base}, find{2}); !errors.Is(err, typed.Unauthorized) {
		t.Errorf("without credentials: got error %v", err)
	}
	if _, err = items.Call(context.Background(), &typed.Client{Base: c.Base, Edit: c.Edit, Most: 3}, find{1}); err == nil || !strings.Contains(err.Error(), "longer than 3 bytes") {
		t.Errorf("with a limit of 3 bytes: got error %v", err)
	}
	lines := typed.NewEndpoint[struct{}, typed.Lines[item]]("GET", "/lines")
	seq, err := lines.Call(context.Background(), c, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		sum += v.ID
	}
	if sum != 3 {
		t.Errorf("got sum %d", sum)
	}
	if p := panics(func() { typed.NewEndpoint[find, item]("GET", "/items/{ident}") }); !strings.Contains(p, "{id}") {
		t.Errorf("endpoint with another pattern: got panic %q", p)
	}
}

// A client reads streams element by element, and distinguishes a truncated stream from a complete stream.
func TestFollow(t *testing.T) {
	broken := errors.New("broken")
	count := func(until int, end error) func(func(item, error) bool) {
		return func(yield func(item, error) bool) {
			for i := range until {
				if !yield(item{ID: i, Tags: []string{strings.Repeat("x", 1000)}}, nil) {
					return
				}
			}
			if end != nil {
				yield(item{}, end)
			}
		}
	}
	type until struct {
		N   int  `query:"n" maximum:"1000"`
		Cut bool `query:"cut" default:"false"`
	}
	end := func(in until) error {
		if in.Cut {
			return broken
		}
		return nil
	}
	app := quiet()
	array := typed.Get(app, "/array", func(_ *dunlin.Request, in until) (typed.Seq[item], error) { return count(in.N, end(in)), nil }).Endpoint()
	lines := typed.Get(app, "/lines", func(_ *dunlin.Request, in until) (typed.Lines[item], error) { return count(in.N, end(in)), nil }).Endpoint()
	events := typed.Get(app, "/events", func(_ *dunlin.Request, in until) (typed.EventsOf[item], error) {
		return func(e *typed.Emitter[item]) error {
			for v := range count(in.N, nil) {
				if err := e.EmitAs(dunlin.Event{Type: "item", ID: "1"}, v); err != nil {
					return err
				}
			}
			return end(in)
		}, nil
	}).Endpoint()
	server := httptest.NewServer(app)
	defer server.Close()
	c := &typed.Client{Base: server.URL}
	small := &typed.Client{Base: server.URL, Most: 500}
	for _, s := range []struct {
		name   string
		follow func(*typed.Client, until) func(func(item, error) bool)
	}{
		{"array", func(c *typed.Client, in until) func(func(item, error) bool) {
			return typed.Follow[item](t.Context(), c, array, in)
		}},
		{"lines", func(c *typed.Client, in until) func(func(item, error) bool) {
			return typed.Follow[item](t.Context(), c, lines, in)
		}},
		{"events", func(c *typed.Client, in until) func(func(item, error) bool) {
			return typed.Follow[item](t.Context(), c, events, in)
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			read := func(c *typed.Client, in until, most int) (n int, err error) {
				for v, err := range s.follow(c, in) {
					if err != nil {
						return n, err
					}
					if v.ID != n {
						t.Fatalf("element %d: got %+v", n, v)
					}
					if n++; n == most {
						break
					}
				}
				return n, nil
			}
			if n, err := read(c, until{N: 300}, 1000); n != 300 || err != nil {
				t.Errorf("got %d elements, error %v", n, err)
			}
			if n, err := read(c, until{}, 1000); n != 0 || err != nil {
				t.Errorf("empty stream: got %d elements, error %v", n, err)
			}
			if n, err := read(c, until{N: 300}, 3); n != 3 || err != nil {
				t.Errorf("got %d elements, error %v", n, err)
			}
			if n, err := read(c, until{N: 300, Cut: true}, 1000); n > 300 || err == nil {
				t.Errorf("truncated stream: got %d elements, error %v", n, err)
			}
			if _, err := read(small, until{N: 2}, 1000); err == nil || !strings.Contains(err.Error(), "Client.Most") {
				t.Errorf("element above the limit: got error %v", err)
			}
			var p *typed.Problem
			if _, err := read(c, until{N: 2000}, 1000); !errors.As(err, &p) || p.Status != 400 || len(p.Errors) != 1 {
				t.Errorf("problem: got error %v", err)
			}
		})
	}
}
