package negotiate_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/negotiate"
)

type user struct {
	XMLName xml.Name `json:"-" xml:"user"`
	ID      int      `json:"id" xml:"id,attr"`
	Name    string   `json:"name" xml:"name"`
}

var formats = negotiate.New(negotiate.JSON, negotiate.XML)

func newApp() *dunlin.App {
	return dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
}

func ask(t *testing.T, app *dunlin.App, name string, values ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header[name] = values
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func ExampleAnswer() {
	app := dunlin.New(dunlin.Config{})
	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
		return negotiate.Answer(formats, r, user{ID: 7, Name: "Ada"})
	})

	req, _ := http.NewRequest("GET", "http://test.example/users/7", nil)
	req.Header.Set("Accept", "application/xml, application/json;q=0.5")
	resp, err := dunlintest.NewClient(app).Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Header.Get("Content-Type"), resp.Header.Get("Vary"))
	fmt.Printf("%s\n", body)
	// Output:
	// application/xml Accept
	// <?xml version="1.0" encoding="UTF-8"?>
	// <user id="7"><name>Ada</name></user>
}

func TestAnswer(t *testing.T) {
	app := newApp()
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		return negotiate.Answer(formats, r, user{ID: 7, Name: "Ada"})
	})
	const asJSON, asXML, refused = "application/json", "application/xml", "application/problem+json"
	for _, c := range []struct{ accept, want string }{
		{"", asJSON},
		{"*/*", asJSON},
		{"application/*", asJSON},
		{"application/xml", asXML},
		{"APPLICATION/XML", asXML},
		{"application/xml, application/json", asJSON}, // equals: the order of the server
		{"application/xml, application/json;q=0.9", asXML},
		{"application/json;q=0.2, */*;q=0.5", asXML},
		{"application/json;q=0.2, application/*;q=0.1, */*;q=0.5", asJSON}, // the more specific range counts
		{"application/json;q=0, */*", asXML},
		{"application/json;q=0,application/xml;q=0, */*", refused},
		{"text/html", refused},
		{"text/html;level=\"1,application/xml\"", refused}, // comma within quotes
		{"application/xml;charset=UTF-8", asXML},
		{"application/xml;version=2", refused},
		{"application/xml;q=2", refused}, // an invalid weight excludes the type
		{"application/xml;q=0.0001", refused},
		{"application/xml;q=1.000, */*;q=0.1", asXML},
		{"application/xml ; q=0.5 , application/json ; q=0.4", asXML},
		{"application/vnd.acme.v2+json", asJSON},
		{"application/vnd.acme.v2+xml", asXML},
		{"application/atom+xml", refused},
		{"application/+xml, ,;q=1,/", refused},
		{"a, application/*;q=x", refused},
	} {
		w := ask(t, app, "Accept", c.accept)
		if got := w.Header().Get("Content-Type"); got != c.want || w.Header().Get("Vary") != "Accept" {
			t.Errorf("Accept: %s: got %q, Vary %q, want %q", c.accept, got, w.Header().Get("Vary"), c.want)
		}
		if (w.Code == http.StatusNotAcceptable) != (c.want == refused) {
			t.Errorf("Accept: %s: got status %d", c.accept, w.Code)
		}
	}
	if w := ask(t, app, "Accept", "text/html", "application/xml"); w.Header().Get("Content-Type") != asXML {
		t.Errorf("two Accept fields: got %v", w.Header())
	}
	if got := ask(t, app, "Accept", "text/html").Body.String(); !strings.Contains(got, "application/json, application/xml") {
		t.Errorf("the refusal does not list the formats: %s", got)
	}
}

// The choice is alike on both engines.
func TestOnEngines(t *testing.T) {
	languages := negotiate.NewLanguages("en", "de")
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, func(t *testing.T, app *dunlin.App) {
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			return negotiate.Answer(formats, r, user{ID: 7, Name: "Ada"})
		}, languages.Middleware())
		addr := dunlintest.Serve(t, app)
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["Accept"] = []string{"text/html", "application/xml"}
		req.Header.Set("Accept-Language", "de-AT, en;q=0.5")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		vary := strings.Join(resp.Header.Values("Vary"), ", ")
		if resp.Header.Get("Content-Type") != "application/xml" || resp.Header.Get("Content-Language") != "de" || vary != "Accept, Accept-Language" {
			t.Errorf("got %v", resp.Header)
		}
	})
}

func TestAnswerThatCannotBeEncoded(t *testing.T) {
	for name, v := range map[string]any{"list": []user{{ID: 1}}, "map": map[string]int{"a": 1}, "nothing": nil, "hidden from JSON": hidden{"hush"}, "number": struct{ F func() }{}} {
		app := newApp()
		app.Get("/", func(r *dunlin.Request) dunlin.Response { return negotiate.Answer(formats, r, v) })
		if w := ask(t, app, "Accept", "application/xml"); w.Code != http.StatusInternalServerError || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %v", name, w.Code, w.Header())
		}
	}
}

type node struct{ Children []*node }

type hidden struct {
	Password string `json:"-"`
}

type celsius float64

func (celsius) MarshalText() ([]byte, error) { return []byte("warm"), nil }

func TestXMLEncodes(t *testing.T) {
	for want, types := range map[bool][]reflect.Type{
		true: {reflect.TypeFor[user](), reflect.TypeFor[*user](), reflect.TypeFor[node](), reflect.TypeFor[int](), reflect.TypeFor[struct {
			T map[string]celsius `xml:"-"`
		}]()},
		false: {reflect.TypeFor[[]user](), reflect.TypeFor[map[string]int](), reflect.TypeFor[struct{ M map[string]int }](), reflect.TypeFor[struct{ C complex128 }](), reflect.TypeFor[any](), reflect.TypeFor[hidden](), reflect.TypeFor[[]hidden](), reflect.TypeFor[struct{ H *hidden }]()},
	} {
		for _, typ := range types {
			if negotiate.XML.Encodes(typ) != want {
				t.Errorf("Encodes(%v): got %v", typ, !want)
			}
		}
	}
}

func TestNewPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"no format":      func() { negotiate.New() },
		"nil":            func() { negotiate.New(nil) },
		"twice":          func() { negotiate.New(negotiate.JSON, negotiate.JSON) },
		"range":          func() { negotiate.New(&negotiate.Format{MediaType: "text/*", Append: negotiate.JSON.Append}) },
		"no function":    func() { negotiate.New(&negotiate.Format{MediaType: "text/csv"}) },
		"no language":    func() { negotiate.NewLanguages() },
		"malformed":      func() { negotiate.NewLanguages("en_US") },
		"language twice": func() { negotiate.NewLanguages("en", "EN") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil {
					t.Error("got no panic")
				}
			}()
			f()
		})
	}
}

func ExampleLanguages() {
	languages := negotiate.NewLanguages("en", "de", "pt-BR")
	hello := map[string]string{"en": "Hello", "de": "Hallo", "pt-BR": "Olá"}

	app := dunlin.New(dunlin.Config{})
	app.Use(languages.Middleware())
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text(hello[languages.Match(r)])
	})

	req, _ := http.NewRequest("GET", "http://test.example/", nil)
	req.Header.Set("Accept-Language", "fr, de-CH;q=0.8")
	resp, err := dunlintest.NewClient(app).Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s %s %s\n", resp.Header.Get("Content-Language"), resp.Header.Get("Vary"), body)
	// Output: de Accept-Language Hallo
}

func TestLanguages(t *testing.T) {
	languages := negotiate.NewLanguages("en", "de", "pt-BR", "zh-Hant", "de-AT")
	app := newApp()
	app.Get("/", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(languages.Match(r)) }, languages.Middleware())
	many, long := strings.Repeat("xx,", 100), ";x="+strings.Repeat("x", 2<<10)
	for accept, want := range map[string]string{
		"":                           "en",
		"*":                          "en",
		"fr":                         "en",
		"de":                         "de",
		"DE-ch":                      "de",
		"de-AT-1996":                 "de-AT",
		"pt":                         "en", // lookup does not lengthen a range
		"pt-br":                      "pt-BR",
		"zh-Hant-CN-x-private1":      "zh-Hant", // the example of RFC 4647
		"zh-Hant-x":                  "zh-Hant",
		"en;q=0.5, de":               "de",
		"en;q=0.5, de;q=0.5":         "en",
		"*, de;q=0.5":                "de",
		"fr, *;q=0.5":                "en",
		"de;q=0, de-AT":              "de-AT",
		"de-CH, de;q=0":              "en",
		"en;q=0":                     "en", // there is always an answer
		"de_DE":                      "en",
		"abcdefghi, de":              "de",
		"-de, de-, --, 1, a;q=1;q=0": "en",
		many + "de":                  "en",
		"de;q=0.1" + long + ",pt-BR": "en", // text after 2 KiB is ignored, also the end of a range
		"pt-BR, de;q=0" + long:       "pt-BR",
		"pt-BR;q=0.1, de" + long:     "pt-BR",
	} {
		w := ask(t, app, "Accept-Language", accept)
		if got := w.Body.String(); got != want || w.Header().Get("Content-Language") != want || w.Header().Get("Vary") != "Accept-Language" {
			t.Errorf("Accept-Language: %s: got %s, %v, want %s", accept, got, w.Header(), want)
		}
	}
}

func TestMiddlewareKeepsHeaders(t *testing.T) {
	languages := negotiate.NewLanguages("en", "de")
	app := newApp()
	app.Get("/", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text("Salut").Header("Content-Language", "fr").Header("Vary", "Accept")
	}, languages.Middleware())
	w := ask(t, app, "Accept-Language", "de")
	if w.Header().Get("Content-Language") != "fr" || strings.Join(w.Header()["Vary"], ", ") != "Accept, Accept-Language" {
		t.Errorf("got %v", w.Header())
	}
}

func TestChoosingAllocatesNothing(t *testing.T) {
	languages := negotiate.NewLanguages("en", "de", "pt-BR")
	app := newApp()
	n := math.Inf(1)
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		n = testing.AllocsPerRun(100, func() {
			if formats.Choose(r) != negotiate.XML || languages.Match(r) != "pt-BR" {
				t.Error("the choice of the format changed")
			}
		})
		return dunlin.NoContent()
	})
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", "text/html, application/xml;q=0.9, */*;q=0.8")
	r.Header.Set("Accept-Language", "fr-CA, pt-BR;q=0.9, *;q=0.1")
	app.ServeHTTP(httptest.NewRecorder(), r)
	if n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func FuzzHeaders(f *testing.F) {
	for _, s := range []string{"", "a/b;q=0.5,*/*", `x;y=",\";q=1", z`, "de-CH, *;q=0.1", "application/vnd.+json", "application/+json"} {
		f.Add(s)
	}
	languages := negotiate.NewLanguages("en", "de-AT")
	f.Fuzz(func(t *testing.T, header string) {
		app := newApp()
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			formats.Choose(r)
			return dunlin.Text(languages.Match(r))
		})
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Accept"], r.Header["Accept-Language"] = []string{header}, []string{header}
		w := httptest.NewRecorder()
		if app.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Errorf("got %d", w.Code)
		}
	})
}
