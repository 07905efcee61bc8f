package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

var update = flag.Bool("update", false, "write the documents in testdata")

type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" format:"uri-reference"`
}

type rating int64

func (rating) Enum() []rating { return []rating{1, 2, 3} }

type base struct {
	ID      int64     `json:"id" readOnly:"true"`
	Created time.Time `json:"created"`
}

type book struct {
	base
	Title  string                 `json:"title" minLength:"1" maxLength:"200" doc:"As on the cover" example:"Moby-Dick"`
	Rating rating                 `json:"rating" default:"2"`
	Author *author                `json:"author,omitempty"`
	Tags   []string               `json:"tags,omitempty" uniqueItems:"true" items.pattern:"^[a-z]+$"`
	Prices map[string]float64     `json:"prices,omitempty" additionalProperties.exclusiveMinimum:"0"`
	Extra  typed.Nullable[string] `json:"extra,omitzero"`
	Any    any                    `json:"any,omitempty"`
	Cover  []byte                 `json:"cover,omitempty"`
	Serial uint64                 `json:"serial,omitempty,string"`
}

type author struct {
	_     struct{} `description:"Who writes books" example:"{\"name\":\"Jane\",\"links\":[1,2]}"`
	Name  string   `json:"name"`
	Books []book   `json:"books,omitempty"`
	Best  *book    `json:"best,omitempty" dependentRequired:"books"`
	Links [2]int16 `json:"links"`
}

type listBooks struct {
	Shelf  string                    `path:"shelf" doc:"Where the book stands"`
	Limit  int64                     `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Sort   []string                  `query:"sort,comma" items.enum:"title,rating" maxItems:"2"`
	Tag    []string                  `query:"tag"`
	Since  typed.Optional[time.Time] `query:"since"`
	Lang   []string                  `header:"X-Lang"`
	Theme  string                    `cookie:"theme" default:"light"`
	Accept string                    `header:"Accept" default:"*/*"`
}

type counted struct {
	Total int64  `header:"X-Total"`
	Link  string `header:"Link,omitzero"`
	Body  page[book]
}

var (
	outOfPrint = typed.NewFault(409, "out-of-print", "The book is out of print")
	onLoan     = typed.NewFault(409, "on-loan", "Somebody has the book")
	gone       = typed.NewFault(404, "https://example.com/problems/gone", "The book is gone")
)

// library registers one operation of every kind.
func library(app *dunlin.App) {
	key := typed.APIKey("key", "header", "X-Key")
	pass := func(next dunlin.Action) dunlin.Action { return next }
	typed.Get(app, "/shelves/{shelf:slug}/books", func(*dunlin.Request, listBooks) (counted, error) { return counted{}, nil }).
		Name("listBooks").Summary("Lists the books of a shelf").Tags("books")
	type bookID struct {
		ID int64 `path:"id"`
	}
	typed.Get(app, "/books/{id:int}", func(*dunlin.Request, bookID) (book, error) { return book{}, nil }).Faults(gone).Tags("books")
	admin := app.Group("/admin", typed.Declares(pass, typed.Requires(key), typed.Unauthorized))
	type create struct {
		Body book
	}
	typed.Post(admin, "/books", func(*dunlin.Request, create) (typed.Created[book], error) { return typed.Created[book]{}, nil }).
		Name("createBook").Faults(outOfPrint, onLoan).Example("small", map[string]any{"title": "Emma"})
	typed.Put(admin, "/books/{id:int}", func(*dunlin.Request, struct {
		bookID
		Body *book
	}) (typed.Either[book, typed.Created[book]], error) {
		return typed.First[book, typed.Created[book]](book{}), nil
	}).Deprecated()
	typed.Delete(admin, "/books/{id:int}", func(*dunlin.Request, bookID) (typed.None, error) { return typed.None{}, nil }).Route().Timeout(time.Second)
	typed.Post(app, "/covers/{file...}", func(*dunlin.Request, struct {
		File  string       `path:"file"`
		Alt   string       `form:"alt" maxLength:"80"`
		Image typed.File   `form:"image" contentType:"image/png" maxLength:"1000000"`
		More  []typed.File `form:"more"`
	}) (typed.Accepted[typed.None], error) {
		return typed.Accepted[typed.None]{}, nil
	}).Route().LimitBy(nil, 2)
	typed.Post(app, "/login", func(*dunlin.Request, struct {
		Name string `form:"name"`
		Keep bool   `form:"keep" default:"false"`
	}) (typed.None, error) {
		return typed.None{}, nil
	})
	typed.Post(app, "/import", func(*dunlin.Request, struct {
		Body typed.Raw `contentType:"text/csv"`
	}) (dunlin.Response, error) {
		return dunlin.Text("ok"), nil
	}).ReturnsBytes(200, "text/plain").Returns(202, []rating{})
	typed.Get(app, "/events", func(*dunlin.Request, struct{}) (typed.EventsOf[book], error) { return nil, nil })
	typed.Get(app, "/lines", func(*dunlin.Request, struct{}) (typed.Lines[author], error) { return nil, nil })
	typed.Get(app, "/all", func(*dunlin.Request, struct{}) (iter.Seq2[book, error], error) { return nil, nil })
	typed.Get(app, "/secret", func(*dunlin.Request, struct{}) (typed.None, error) { return typed.None{}, nil }).Hidden()
	v2 := app.Version("v2")
	typed.Get(v2, "/books/{id:int}", func(*dunlin.Request, bookID) (author, error) { return author{}, nil })
	typed.Get(app.Host("{tenant}.example.com"), "/tenant", func(*dunlin.Request, struct {
		Tenant string `path:"tenant"`
	}) (string, error) {
		return "", nil
	})
	app.Get("/untyped", func(*dunlin.Request) dunlin.Response { return dunlin.Empty() })
}

var libraryConfig = openapi.Config{
	Title: "Library", Version: "1.2.3", Description: "Books & shelves", Servers: []openapi.Server{{URL: "https://example.com"}},
	Tags: []openapi.Tag{{Name: "books", Description: "What is read"}}, License: openapi.License{Name: "MIT", Identifier: "MIT"},
}

func quiet() *dunlin.App { return dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}) }

func TestDocuments(t *testing.T) {
	for _, c := range []struct{ file, version, routes string }{
		{"library-3.1.json", "3.1", ""}, {"library-3.2.json", "3.2", ""}, {"library-v2.json", "", "v2"},
	} {
		t.Run(c.file, func(t *testing.T) {
			config := libraryConfig
			config.OpenAPI, config.Routes = c.version, c.routes
			var docs [3][]byte
			for i := range docs {
				app := quiet()
				library(app)
				var err error
				if docs[i], err = openapi.Document(app, config); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(docs[i], docs[0]) {
					t.Fatal("got different documents in two runs")
				}
			}
			file := "testdata/" + c.file
			if *update {
				if err := os.WriteFile(file, docs[0], 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(docs[0], want) {
				t.Errorf("the document differs from %s; run go test ./openapi -update and check the changes with git diff", file)
			}
			if bytes.Contains(docs[0], []byte(`"default": {`)) || !json.Valid(docs[0]) {
				t.Error("got a default response, or invalid JSON")
			}
		})
	}
}

func TestNames(t *testing.T) {
	app := quiet()
	type pair[A, B any] struct {
		A A
		B B
	}
	get := func(pattern string, f func(string)) { f(pattern) }
	get("/1", func(p string) {
		typed.Get(app, p, func(*dunlin.Request, struct{}) (page[map[string][]*book], error) {
			return page[map[string][]*book]{}, nil
		})
	})
	get("/2", func(p string) {
		typed.Get(app, p, func(*dunlin.Request, struct{}) (pair[page[book], int], error) { return pair[page[book], int]{}, nil })
	})
	get("/3", func(p string) {
		typed.Get(app, p, func(*dunlin.Request, struct{}) (slog.Source, error) { return slog.Source{}, nil })
	})
	doc, err := openapi.Document(app, openapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"PageOfBookListMap", "PairOfPageOfBookAndInt", "Source", "Author", "Book"} {
		if !bytes.Contains(doc, []byte(`"`+name+`": {`)) {
			t.Errorf("got no component %s in\n%s", name, doc)
		}
	}
}

// Types with the same name are distinguished by their packages, or refused.
func TestSameNames(t *testing.T) {
	app := quiet()
	type Source struct{ Own int }
	typed.Get(app, "/1", func(*dunlin.Request, struct{}) (Source, error) { return Source{}, nil })
	typed.Get(app, "/2", func(*dunlin.Request, struct{}) (slog.Source, error) { return slog.Source{}, nil })
	doc, err := openapi.Document(app, openapi.Config{})
	if err != nil || !bytes.Contains(doc, []byte(`"SlogSource": {`)) || !bytes.Contains(doc, []byte(`"Openapi_testSource": {`)) {
		t.Errorf("%v\n%s", err, doc)
	}
	type one = struct{ A book }
	_ = one{}
	other := func() {
		type Source struct{ Other int }
		typed.Get(app, "/3", func(*dunlin.Request, struct{}) (Source, error) { return Source{}, nil })
	}
	other()
	if _, err = openapi.Document(app, openapi.Config{}); err == nil || !strings.Contains(err.Error(), "rename one") {
		t.Errorf("two types with the same name in a package: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	type id struct {
		ID string `path:"id"`
	}
	type name struct {
		Name string `path:"name"`
	}
	app := quiet()
	typed.Get(app, "/a/{id:int}", func(*dunlin.Request, id) (typed.None, error) { return typed.None{}, nil })
	typed.Get(app, "/a/{name:alpha}", func(*dunlin.Request, name) (typed.None, error) { return typed.None{}, nil })
	if _, err := openapi.Document(app, openapi.Config{}); err == nil || strings.Count(err.Error(), "document_test.go:") != 2 {
		t.Errorf("two paths that OpenAPI cannot distinguish: %v", err)
	}
	if _, err := openapi.Document(quiet(), openapi.Config{OpenAPI: "2.0"}); err == nil {
		t.Error("OpenAPI 2.0 was accepted")
	}
}

// many registers n operations. Most of their types have been compiled before.
func many(n int) *dunlin.App {
	app := quiet()
	for i := range n {
		typed.Post(app, fmt.Sprintf("/r%d/{shelf}/books", i), func(*dunlin.Request, struct {
			listBooks
			Body book
		}) (page[book], error) {
			return page[book]{}, nil
		}).Faults(gone, onLoan)
	}
	return app
}

func BenchmarkDocument(b *testing.B) {
	for b.Loop() {
		doc, err := openapi.Document(many(500), openapi.Config{})
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Discard.Write(doc)
	}
}

// The server and summaries have defaults.
func TestUnsaid(t *testing.T) {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	none := func(*dunlin.Request, struct{}) (typed.None, error) { return typed.None{}, nil }
	for name, want := range map[string]string{
		"listBooks": "List books", "list_books": "List books", "books.list-all": "Books list all", "getJSON": "Get JSON", "getX": "Get X", "v2Books": "V2 books", "list": "List",
	} {
		typed.Get(app, "/"+name, none).Name(name)
		doc, err := openapi.Document(app, openapi.Config{})
		if err != nil || !bytes.Contains(doc, []byte(`"summary": "`+want+`"`)) {
			t.Errorf("operation %s: got no summary %q, error %v", name, want, err)
		}
	}
	typed.Get(app, "/unnamed", none)
	doc, err := openapi.Document(app, openapi.Config{})
	if err != nil || bytes.Contains(doc, []byte("nnamed\",\n        \"summary")) || !bytes.Contains(doc, []byte("\"servers\": [\n    {\n      \"url\": \"/\"\n    }\n  ],\n  \"security\": []")) {
		t.Errorf("%v\n%s", err, doc)
	}
}

// The rules in the tag of a blank field are enforced and are in the document.
func TestBlankField(t *testing.T) {
	type period struct {
		_     struct{} `description:"One or both" minProperties:"1"`
		From  string   `json:"from,omitempty"`
		Until string   `json:"until,omitempty"`
	}
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	typed.Post(app, "/", func(*dunlin.Request, struct {
		Body struct {
			In period  `json:"in"`
			By *period `json:"by,omitempty" description:"Another"`
		}
	}) (typed.None, error) {
		return typed.None{}, nil
	})
	doc, err := openapi.Document(app, openapi.Config{})
	if err != nil || bytes.Count(doc, []byte(`"One or both"`)) != 1 || bytes.Count(doc, []byte(`"minProperties": 1`)) != 1 || bytes.Count(doc, []byte(`"Another"`)) != 1 {
		t.Errorf("%v\n%s", err, doc)
	}
	for body, status := range map[string]int{`{"in":{}}`: 400, `{"in":{"from":"a"}}`: 204, `{"in":{"from":"a"},"by":{}}`: 400} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if app.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%s: got %d %s", body, w.Code, w.Body)
		}
	}
}

// An operation requires one alternative of each of its requirements.
func TestSecurity(t *testing.T) {
	token, session := typed.Requires(typed.BearerAuth("token", "JWT"), "admin"), typed.Requires(typed.APIKey("session", "cookie", "sid"))
	key, password := typed.Requires(typed.APIKey("key", "header", "X-Key")), typed.Requires(typed.BasicAuth("password"))
	for _, c := range []struct {
		name     string
		required []typed.Declaration
		want     string
		scoped   bool
	}{
		{"one", []typed.Declaration{session}, `[{"session":[]}]`, false},
		{"a name and a password", []typed.Declaration{password}, `[{"password":[]}]`, false},
		{"all", []typed.Declaration{session, key}, `[{"key":[],"session":[]}]`, false},
		{"either", []typed.Declaration{session.Or(token)}, `[{"session":[]},{"token":["admin"]}]`, true},
		{"choice of three", []typed.Declaration{session.Or(token.Or(key))}, `[{"session":[]},{"token":["admin"]},{"key":[]}]`, true},
		{"choice and a requirement", []typed.Declaration{session.Or(token), key}, `[{"key":[],"session":[]},{"key":[],"token":["admin"]}]`, true},
		{"requirement and a choice", []typed.Declaration{key, session.Or(token)}, `[{"key":[],"session":[]},{"key":[],"token":["admin"]}]`, true},
		{"twice the same", []typed.Declaration{key, key}, `[{"key":[]}]`, false},
	} {
		app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
		pass := func(next dunlin.Action) dunlin.Action { return next }
		typed.Get(app, "/", func(*dunlin.Request, struct{}) (typed.None, error) { return typed.None{}, nil }, typed.Declares(pass, c.required...))
		text, err := openapi.Document(app, openapi.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Paths map[string]map[string]struct {
				Security  []map[string][]string
				Responses map[string]any
			}
			Components struct{ SecuritySchemes map[string]map[string]any }
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		op := doc.Paths["/"]["get"]
		got, err := json.Marshal(op.Security)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want || (op.Responses["403"] != nil) != c.scoped || op.Responses["401"] == nil {
			t.Errorf("%s: got %s with %d answers, want %s", c.name, got, len(op.Responses), c.want)
		}
		if s, ok := doc.Components.SecuritySchemes["password"]; ok != strings.Contains(c.want, "password") || ok && (s["type"] != "http" || s["scheme"] != "basic") {
			t.Errorf("%s: got %v", c.name, s)
		}
	}
	if ways := session.Or(token).Or(key).Alternatives(); len(ways) != 3 || len(session.Alternatives()) != 1 {
		t.Errorf("got %d alternatives, and %d of one requirement", len(ways), len(session.Alternatives()))
	}
}
