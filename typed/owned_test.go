package typed_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

const partOfFile = "--b\r\nContent-Disposition: form-data; name=\"file\"; "

// Parts of an input that an action retains stay unchanged.
func TestInputsAreOwned(t *testing.T) {
	type raw struct{ Body typed.Raw }
	type uploaded struct {
		File typed.File `form:"file"`
	}
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
		t.Run(engine.String(), func(t *testing.T) {
			if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
				t.Skip("the loop engine needs Linux")
			}
			t.Cleanup(http.DefaultClient.CloseIdleConnections)
			kept := make(chan []byte, 10)
			url := serveOn(t, engine, func(app *dunlin.App) {
				typed.Post(app, "/raw", func(_ *dunlin.Request, in raw) (typed.None, error) { kept <- in.Body; return typed.None{}, nil })
				typed.Post(app, "/file", func(_ *dunlin.Request, in uploaded) (typed.None, error) {
					kept <- in.File.Data
					return typed.None{}, nil
				})
			})
			for _, c := range "abcde" {
				text := strings.Repeat(string(c), 100)
				sent(t, "POST", url+"/raw", text, "Content-Type: text/plain")
				sent(t, "POST", url+"/file", partOfFile+"filename=\"f\"\r\n\r\n"+text+"\r\n--b--", "Content-Type: multipart/form-data; boundary=b")
			}
			for _, c := range "abcde" {
				for range 2 {
					if got := string(<-kept); got != strings.Repeat(string(c), 100) {
						t.Errorf("%c was changed to %s", c, got)
					}
				}
			}
		})
	}
}

func TestFileNames(t *testing.T) {
	app := quiet()
	typed.Post(app, "/", func(_ *dunlin.Request, in struct {
		File typed.File `form:"file" maxLength:"3"`
	}) (string, error) {
		return in.File.Name, nil
	})
	for head, want := range map[string]string{
		`filename="a.txt"`:                            `"a.txt"`,
		`filename="/etc/a*.txt"`:                      `"a*.txt"`,
		`filename="a.txt"; filename*=UTF-8''b%0A%00c`: `"a.txt"`,
		`filename*=UTF-8''b.txt`:                      `"must be a file"`,
		`filename*0="b"; filename*1=".txt"`:           `"must be a file"`,
		"filename=\"a\x00b\"":                         "control characters",
		"filename=\"a\nb\"":                           "control characters",
		"filename=\"a\"\r\nContent-Type: a/b\x01":     "control characters",
	} {
		a := ask(t, app, "POST /", "Content-Type: multipart/form-data; boundary=b", "", partOfFile+head+"\r\n\r\nabc\r\n--b--")
		if !strings.Contains(a.body, want) {
			t.Errorf("%q: got %d %s", head, a.status, a.body)
		}
	}
	a := ask(t, app, "POST /", "Content-Type: multipart/form-data; boundary=b", "", partOfFile+"filename=\"a\"\r\n\r\nabcd\r\n--b--")
	if !strings.Contains(a.body, `"detail":"must have at most 3 bytes"`) {
		t.Errorf("got %s", a.body)
	}
}

// Parameters are numbers in the syntax of JSON. No number silently becomes zero.
func TestNumbers(t *testing.T) {
	app := quiet()
	typed.Get(app, "/", func(_ *dunlin.Request, in struct {
		I int     `query:"i" default:"1"`
		U uint64  `query:"u" default:"1"`
		F float64 `query:"f" default:"1"`
		G float32 `query:"g" default:"1"`
	}) (typed.None, error) {
		return typed.None{}, nil
	})
	type numbers struct {
		F float64 `json:"f,omitempty" exclusiveMinimum:"-1"`
		G float32 `json:"g,omitempty"`
		A any     `json:"a,omitempty"`
	}
	typed.Post(app, "/", func(_ *dunlin.Request, in struct{ Body numbers }) (typed.None, error) { return typed.None{}, nil })
	for query, want := range map[string]string{
		"i=0": "", "i=-0": "", "u=0": "", "f=0.5": "", "f=-0": "", "f=0e-999": "", "f=1E5": "", "g=1e-40": "", "f=5e-324": "",
		"i=01": "i type integer", "i=-01": "i type integer", "i=%2B1": "i type integer", "u=00": "u type integer", "u=-0": "u format uint64",
		"f=.5": "f type number", "f=01": "f type number", "f=1.": "f type number", "f=%2B1": "f type number", "f=Inf": "f type number", "f=0x1p-2": "f type number", "f=1_0": "f type number",
		"f=1e-400": "f format double", "f=1e400": "f format double", "g=1e-60": "g format float", "g=1e39": "g format float",
	} {
		a := ask(t, app, "GET /?"+query)
		if want == "" && a.status != 204 {
			t.Errorf("%s: got %d %s", query, a.status, a.body)
		} else if want != "" {
			expectViolations(t, a, "query "+want)
		}
	}
	for body, want := range map[string]string{
		`{"f":1e-300,"g":1e-40,"a":[0e-999,0.0]}`: "", `{"f":1e-400}`: "body #/f format double", `{"g":1e-60}`: "body #/g format float", `{"a":[1e-400]}`: "body #/a/0 format double",
	} {
		a := post(t, app, "/", body)
		if want == "" && a.status != 204 {
			t.Errorf("%s: got %d %s", body, a.status, a.body)
		} else if want != "" {
			expectViolations(t, a, want)
		}
	}
}

// A list of invalid elements is not read further once the report is full.
func TestLongParameterLists(t *testing.T) {
	app := quiet()
	typed.Get(app, "/", func(_ *dunlin.Request, in struct {
		A []int    `query:"a,comma"`
		B []string `header:"B" items.maxLength:"1"`
	}) (typed.None, error) {
		return typed.None{}, nil
	})
	a := ask(t, app, "GET /?a="+strings.Repeat("x,", 500), "B: "+strings.Repeat("xx,", 500))
	if n := len(a.violations(t)); n != 100 || !strings.Contains(a.body, "more than 100 places") {
		t.Errorf("got %d violations: %.200s", n, a.body)
	}
}

// cents encodes as a string.
type cents int

func (c cents) MarshalJSON() ([]byte, error) { return json.Marshal("1.00") }
func (c *cents) UnmarshalJSON(b []byte) error {
	if string(b) != `"1.00"` {
		return errors.New("no amount")
	}
	return nil
}

func TestTypesWithMarshalJSON(t *testing.T) {
	type plain struct {
		Body struct {
			A cents `json:"a" example:"1.00x"`
		}
	}
	type format struct {
		Body struct {
			A cents `json:"a" minLength:"1"`
		}
	}
	type good struct {
		Body struct {
			A cents `json:"a" example:"\"1.00\""`
		}
	}
	for _, c := range []struct{ got, want string }{
		{try[plain]("POST", "/"), `UnmarshalJSON of typed_test.cents refuses "1.00x"`},
		{try[format]("POST", "/"), "minLength does not apply to typed_test.cents, whose methods encode and decode its JSON: describe the JSON with typed.SchemaAs"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("got %s\nwant %s", c.got, c.want)
		}
	}
	if got := try[good]("POST", "/"); got != "" {
		t.Error(got)
	}
	app := quiet()
	typed.Post(app, "/", func(*dunlin.Request, good) (typed.None, error) { return typed.None{}, nil })
	if a := post(t, app, "/", `{"a":1}`); !strings.Contains(a.body, "must be a cents") {
		t.Errorf("got %s", a.body)
	}
}

func TestFieldsWithoutASource(t *testing.T) {
	for name, got := range map[string]string{
		"a field":            try[struct{ Limit int }]("GET", "/"),
		"an embedded struct": try[struct{ cents }]("GET", "/") + try[struct{ typed.Raw }]("GET", "/"),
	} {
		if !strings.Contains(got, "it has no source") {
			t.Errorf("%s: got panic %q", name, got)
		}
	}
	if got := try[struct {
		Limit int `dunlin:"-"`
		own   int //nolint
		_     struct{}
	}]("GET", "/"); got != "" {
		t.Error(got)
	}
}
