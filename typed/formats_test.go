package typed_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/negotiate"
	"github.com/dunlinhttp/dunlin/typed"
)

type note struct {
	ID   int       `json:"id" xml:"id,attr"`
	Text string    `json:"text" xml:"text"`
	At   time.Time `json:"at" xml:"at"`
}

func formatted() *dunlin.App {
	app := dunlin.New(dunlin.Config{})
	typed.Configure(app, typed.Config{Formats: []*negotiate.Format{negotiate.XML}})
	return app
}

func accept(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", value) }
}

type noteID struct {
	ID int `path:"id"`
}

func TestFormats(t *testing.T) {
	app := formatted()
	get := typed.Get(app, "/notes/{id:int}", func(_ *dunlin.Request, in noteID) (note, error) {
		return note{ID: in.ID, Text: "Hello"}, nil
	})
	type newNote struct{ Body note }
	ran := 0
	post := typed.Post(app, "/notes", func(_ *dunlin.Request, in newNote) (typed.Created[note], error) {
		ran++
		return typed.Created[note]{Location: "/notes/1", Body: in.Body}, nil
	})
	for value, want := range map[string]string{
		"":                                 "application/json",
		"application/xml":                  "application/xml",
		"application/xml;q=0.5, */*":       "application/json",
		"application/json;q=0, */*;q=0.1":  "application/xml",
		"application/vnd.acme.v1+json":     "application/json",
		"text/html":                        "application/problem+json",
		"application/xml;q=0, application": "application/problem+json",
	} {
		got := get.Test(t, app, noteID{7}, accept(value))
		if kind := got.Header.Get("Content-Type"); kind != want || got.Header.Get("Vary") != "Accept" {
			t.Errorf("Accept: %s: got %s with Vary %q, want %s", value, kind, got.Header.Get("Vary"), want)
		}
	}
	if body := string(get.Test(t, app, noteID{7}, accept("application/xml")).Body); !strings.Contains(body, `<note id="7"><text>Hello</text>`) {
		t.Errorf("got %s", body)
	}
	made := post.Test(t, app, newNote{note{ID: 1, Text: "a"}}, accept("application/xml"))
	if made.Status != 201 || made.Header.Get("Location") != "/notes/1" || made.Header.Get("Content-Type") != "application/xml" {
		t.Errorf("got %d %v", made.Status, made.Header)
	}
	if refused := post.Test(t, app, newNote{}, accept("text/html")); refused.Status != 406 || ran != 1 {
		t.Errorf("got status %d and %d runs of the action", refused.Status, ran)
	}
}

type ownJSON struct{}

func (ownJSON) MarshalJSON() ([]byte, error) { return json.Marshal("own") }
func (*ownJSON) UnmarshalJSON([]byte) error  { return nil }

// Outputs that other formats cannot represent correctly are sent as JSON, for any Accept header.
func TestJSONOnlyOutputs(t *testing.T) {
	app := formatted()
	asked := func(name string, got http.Header, body []byte) {
		t.Helper()
		if got.Get("Content-Type") != "application/json" || got.Get("Vary") != "" {
			t.Errorf("%s: got %v %s", name, got, body)
		}
	}
	type secret struct {
		Name     string `json:"name"`
		Password string `json:"password" writeOnly:"true"`
	}
	type nullable struct {
		Name typed.Nullable[string] `json:"name"`
	}
	type own struct {
		Value ownJSON `json:"value"`
	}
	a := typed.Get(app, "/secret", func(*dunlin.Request, struct{}) (secret, error) { return secret{"ada", "hush"}, nil }).
		Test(t, app, struct{}{}, accept("application/xml"))
	asked("write-only members", a.Header, a.Body)
	if strings.Contains(string(a.Body), "hush") {
		t.Errorf("got %s", a.Body)
	}
	b := typed.Get(app, "/nullable", func(*dunlin.Request, struct{}) (nullable, error) { return nullable{}, nil }).
		Test(t, app, struct{}{}, accept("application/xml"))
	asked("Nullable", b.Header, b.Body)
	c := typed.Get(app, "/own", func(*dunlin.Request, struct{}) (own, error) { return own{}, nil }).
		Test(t, app, struct{}{}, accept("application/xml"))
	asked("MarshalJSON", c.Header, c.Body)
	d := typed.Get(app, "/list", func(*dunlin.Request, struct{}) ([]note, error) { return nil, nil }).
		Test(t, app, struct{}{}, accept("application/xml"))
	asked("list, which has no root in XML", d.Header, d.Body)
	e := typed.Get(app, "/seq", func(*dunlin.Request, struct{}) (typed.Seq[note], error) { return nil, nil }).
		Test(t, app, struct{}{}, accept("application/xml"))
	asked("stream", e.Header, e.Body)
}

func TestFormatsOfAnswers(t *testing.T) {
	app := formatted()
	op := typed.Get(app, "/notes/{id:int}", func(_ *dunlin.Request, in noteID) (typed.Either[note, typed.None], error) {
		return typed.First[note, typed.None](note{}), nil
	})
	byStatus := map[int]typed.Answer{}
	for _, a := range op.Answers() {
		byStatus[a.Status] = a
	}
	if got := byStatus[200].Formats; !slices.Equal(got, []string{"application/xml"}) {
		t.Errorf("status 200: got %v", got)
	}
	if _, ok := byStatus[406]; !ok || byStatus[204].Formats != nil {
		t.Errorf("got %v", byStatus)
	}
}
