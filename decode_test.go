package dunlin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

type address struct {
	Street string `json:"street"`
	Zip    int8   `json:"zip"`
}

type base struct {
	Origin string `json:"origin"`
}

type order struct {
	base
	ID      int                  `json:"id"`
	Name    string               `json:"name"`
	Paid    bool                 `json:"paid"`
	Ratio   float32              `json:"ratio"`
	Tags    []string             `json:"tags"`
	To      *address             `json:"to"`
	Items   []address            `json:"items"`
	Grid    [2][]uint8           `json:"grid"`
	ByName  map[string]address   `json:"by name"`
	ByID    map[int]bool         `json:"by~id/"`
	When    time.Time            `json:"when"`
	Due     *time.Time           `json:"due"`
	Raw     json.RawMessage      `json:"raw"`
	Any     any                  `json:"any"`
	Photo   []byte               `json:"photo"`
	Count   int                  `json:"count,string"`
	Hidden  string               `json:"-"`
	Level   level                `json:"level"`
	Nested  map[string][]address `json:"nested"`
	Number  json.Number          `json:"number"`
	Default string
}

// level decodes itself, and its error must not reach the client.
type level int

func (l *level) UnmarshalJSON(b []byte) error {
	if string(b) == `"high"` {
		*l = 3
		return nil
	}
	return errors.New("secret detail of level")
}

// decodeApp decodes an order and answers with its ID.
func decodeApp() (*dunlin.App, *logBuffer) {
	app, logs := newApp(dunlin.Config{Limits: dunlin.Limits{MaxBody: 1 << 16}})
	app.Post("/", func(r *dunlin.Request) dunlin.Response {
		o, err := dunlin.Decode[order](r)
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprintf("%+v", o.ID))
	})
	return app, logs
}

// refusal is the problem that a client gets for an invalid request body.
type refusal struct {
	Title   string
	Status  int
	Detail  string
	Pointer *string
	Offset  *int
}

func readRefusal(t *testing.T, w *httptest.ResponseRecorder) refusal {
	t.Helper()
	var got refusal
	if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("got status %d, Content-Type %q, body %q", w.Code, ct, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Status != w.Code {
		t.Fatalf("got status %d and an invalid problem %s: %v", w.Code, w.Body, err)
	}
	return got
}

func TestDecodeAccepts(t *testing.T) {
	app, _ := decodeApp()
	for name, body := range map[string]string{
		"all members": `{"origin":"o","id":7,"name":"n","paid":true,"ratio":1.5e3,"tags":["a",null],"to":{"street":"s","zip":-128},
			"items":[{"zip":1}],"grid":["AQI=",[1,2],[9]],"by name":{"x":{}},"by~id/":{"1":true},"when":"2026-01-31T15:04:05Z","due":null,
			"raw":{"free":[1]},"any":{"free":[{}]},"photo":"AQI=","count":"5","level":"high","nested":{"a":[{}]},"number":1e400,"Default":"d"}`,
		"white space around":           " \r\n\t{\"id\":7} \n",
		"other case":                   `{"ID":7}`,
		"escaped name":                 `{"\u0069d":7}`,
		"twice the same: the last one": `{"id":6,"id":7}`,
		"null for everything":          `{"id":7,"name":null,"tags":null,"to":null,"by name":null,"when":null,"any":null,"photo":null}`,
		"unusual valid strings":        "{\"id\":7,\"name\":\"\\ud800 \xff \\/\"}",
		"embedded":                     `{"id":7,"origin":"x"}`,
	} {
		for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8", "application/merge-patch+json"} {
			if w := doBody(app, "POST", "/", body, "Content-Type", contentType); w.Code != 200 || w.Body.String() != "7" {
				t.Errorf("%s as %s: got %d %s", name, contentType, w.Code, w.Body)
			}
		}
	}
}

func TestDecodeSyntax(t *testing.T) {
	app, _ := decodeApp()
	const ends = -1 // expected offset for a truncated body
	for _, c := range []struct {
		name, body string
		offset     int
	}{
		{"no JSON", `hello`, 0},
		{"nothing but a brace", `{`, ends},
		{"cut after a name", `{"id"`, ends},
		{"cut after a colon", `{"id":`, ends},
		{"cut in a string", `{"name":"abc`, ends},
		{"cut in an escape", `{"name":"\u00`, ends},
		{"cut after a backslash", `{"name":"\`, ends},
		{"cut in a word", `{"paid":tru`, ends},
		{"cut in a number", `{"id":-`, ends},
		{"cut in an exponent", `{"ratio":1e`, ends},
		{"cut after a comma", `{"id":1,`, ends},
		{"cut in an array", `{"tags":["a"`, ends},
		{"no name", `{id:1}`, 1},
		{"no colon", `{"id" 1}`, 6},
		{"no value", `{"id":}`, 6},
		{"comma at the end", `{"id":1,}`, 8},
		{"comma at the end of an array", `{"tags":["a",]}`, 13},
		{"two commas", `{"id":1,,"name":""}`, 8},
		{"no comma", `{"id":1 "name":""}`, 8},
		{"wrong bracket", `{"tags":["a"}`, 12},
		{"single quotes", `{'id':1}`, 1},
		{"comment", `{"id":1/*c*/}`, 7},
		{"NaN", `{"ratio":NaN}`, 9},
		{"leading zero", `{"id":01}`, 7},
		{"plus", `{"id":+1}`, 6},
		{"no digit after the point", `{"ratio":1.}`, 11},
		{"no digit in the exponent", `{"ratio":1e+}`, 12},
		{"hexadecimal", `{"id":0x1}`, 7},
		{"misspelled word", `{"paid":trie}`, 10},
		{"upper-case word", `{"paid":True}`, 8},
		{"raw control byte", "{\"name\":\"a\nb\"}", 10},
		{"unknown escape", `{"name":"\x41"}`, 10},
		{"bad hex digit", `{"name":"\u00g0"}`, 13},
		{"zero byte", "{\"id\":\x001}", 6},
		{"byte order mark", "\xef\xbb\xbf{}", 0},
		{"form feed for space", "{\f}", 1},
		{"second value", `{"id":1}{"id":2}`, 8},
		{"second value after a space", "{\"id\":1}\n 2", 10},
		{"brace too many", `{"id":1}}`, 8},
		{"number after a number", `0 1`, 2},
		{"wrong type before bad syntax", `{"id":"x","name":}`, 17},
		{"nested too deep", `{"any":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 10_006},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := doBody(app, "POST", "/", c.body, "Content-Type", "application/json")
			got := readRefusal(t, w)
			offset, say := c.offset, "unexpected byte"
			if offset == ends {
				offset, say = len(c.body), "the body ends within a value"
			}
			if w.Code != 400 || got.Offset == nil || *got.Offset != offset || got.Pointer != nil {
				t.Errorf("got status %d, %s; want offset %d and no pointer", w.Code, w.Body, offset)
			}
			wantContains(t, "detail", got.Detail, fmt.Sprintf("invalid JSON at offset %d: ", offset), say)
		})
	}
}

func TestDecodeWrongValue(t *testing.T) {
	app, _ := decodeApp()
	integer := fmt.Sprintf("an integer of %d bits", strconv.IntSize)
	for _, c := range []struct{ name, body, pointer, detail string }{
		{"array instead of the top-level object", `[]`, "", "invalid value at the top: an array instead of an object"},
		{"string instead of the top-level object", ` "x"`, "", "invalid value at the top: a string instead of an object"},
		{"number instead of the top-level object", `5`, "", "invalid value at the top: the number 5 instead of an object"},
		{"string for a number", `{"id":"7"}`, "/id", "a string instead of " + integer},
		{"fraction for an integer", `{"id":1.5}`, "/id", "the number 1.5 instead of " + integer},
		{"exponent for an integer", `{"id":1e2}`, "/id", "the number 1e2 instead of " + integer},
		{"number for a string", `{"name":1}`, "/name", "the number 1 instead of a string"},
		{"object for a string", `{"name":{"a":[1]}}`, "/name", "an object instead of a string"},
		{"number for a boolean", `{"paid":1}`, "/paid", "the number 1 instead of a boolean"},
		{"boolean for a number", `{"id":true}`, "/id", "a boolean instead of " + integer},
		{"too large for a float", `{"ratio":1e39}`, "/ratio", "the number 1e39 instead of a number of 32 bits"},
		{"too large for an int8", `{"to":{"zip":128}}`, "/to/zip", "the number 128 instead of an integer of 8 bits"},
		{"a long number", `{"id":` + strings.Repeat("9", 40) + `}`, "/id", "a number instead of " + integer},
		{"object for an array", `{"tags":{}}`, "/tags", "an object instead of an array"},
		{"string for an array", `{"tags":"a"}`, "/tags", "a string instead of an array"},
		{"array for an object", `{"to":[1]}`, "/to", "an array instead of an object"},
		{"in an array", `{"tags":["a","b",3]}`, "/tags/2", "the number 3 instead of a string"},
		{"in an array of objects", `{"items":[{},{"zip":1},{"street":[]}]}`, "/items/2/street", "an array instead of a string"},
		{"in an array of arrays", `{"grid":[[1],[1,256]]}`, "/grid/1/1", "the number 256 instead of an integer without sign of 8 bits"},
		{"in a map", `{"by name":{"a":{},"b/c~d":{"zip":"x"}}}`, "/by name/b~1c~0d/zip", "a string instead of an integer of 8 bits"},
		{"in a map of arrays", `{"nested":{"k":[{},{"zip":null},{"zip":{}}]}}`, "/nested/k/2/zip", "an object instead of an integer of 8 bits"},
		{"name of a map", `{"by~id/":{"1":true,"x":true}}`, "/by~0id~1/x", "a string instead of " + integer},
		{"embedded", `{"origin":1}`, "/origin", "the number 1 instead of a string"},
		{"another case", `{"TAGS":[1]}`, "/TAGS/0", "the number 1 instead of a string"},
		{"after free values", `{"raw":{"a":[1,{"b":2}]},"any":[[["x"]]],"id":""}`, "/id", "a string instead of " + integer},
		{"not a time", `{"when":"tomorrow"}`, "/when", `a string instead of a time such as "2026-01-31T15:04:05Z"`},
		{"invalid time, pointer field", `{"due":7}`, "/due", `the number 7 instead of a time such as "2026-01-31T15:04:05Z"`},
		{"not base64", `{"photo":"?"}`, "/photo", "a string instead of a string in base64"},
		{"no number in a string", `{"number":"abc"}`, "/number", "a string instead of a number"},
		{"boolean for a json.Number", `{"number":true}`, "/number", "a boolean instead of a number"},
		{"refused by UnmarshalJSON", `{"level":"low"}`, "/level", "a string instead of a different value"},
		{"object refused by UnmarshalJSON", `{"level":{"a":1}}`, "/level", "an object instead of a different value"},
		{"not a number in a string", `{"number":"x"}`, "/number", "a string instead of"},
		{"number for a quoted number", `{"count":5}`, "/count", "the number 5 instead of a string that holds " + integer},
		{"text for a quoted number", `{"count":"x"}`, "/count", "a string instead of a string that holds " + integer},
		{"the first of two", `{"name":1,"id":""}`, "/name", "the number 1 instead of a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := doBody(app, "POST", "/", c.body, "Content-Type", "application/json")
			got := readRefusal(t, w)
			if w.Code != 400 || got.Offset == nil || *got.Offset < 0 || *got.Offset >= len(c.body) {
				t.Errorf("got status %d, %s; want an offset within the body", w.Code, w.Body)
			}
			if pointer := deref(got.Pointer); pointer != c.pointer {
				t.Errorf("got pointer %q, want %q", pointer, c.pointer)
			}
			wantContains(t, "detail", got.Detail, c.detail, "invalid value at ")
			wantLacks(t, "answer", w.Body.String(), "json:", "Go ", "dunlin_test", "secret", "parsing")
		})
	}
}

func TestDecodeUnknownMember(t *testing.T) {
	app, _ := decodeApp()
	for _, c := range []struct {
		name, body, pointer string
		offset              int
	}{
		{"at the top", `{"nam":1}`, "/nam", 1},
		{"second member", `{"id":1, "x":2}`, "/x", 9},
		{"empty name", `{"":1}`, "/", 1},
		{"member with the tag -", `{"Hidden":"x"}`, "/Hidden", 1},
		{"the tag itself", `{"-":"x"}`, "/-", 1},
		{"in an object", `{"to":{"city":""}}`, "/to/city", 7},
		{"in an array", `{"items":[{},{"city":{}}]}`, "/items/1/city", 14},
		{"in a map", `{"by name":{"a":{"b":1}}}`, "/by name/a/b", 17},
		{"name of an embedded struct", `{"base":{}}`, "/base", 1},
		{"escaped name", `{"\u0078\/":1}`, "/x~1", 1},
		{"of a deep value", `{"x":{"y":[{}]}}`, "/x", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := doBody(app, "POST", "/", c.body, "Content-Type", "application/json")
			got := readRefusal(t, w)
			if w.Code != 400 || deref(got.Pointer) != c.pointer || got.Offset == nil || *got.Offset != c.offset {
				t.Errorf("got status %d, %s; want pointer %q, offset %d", w.Code, w.Body, c.pointer, c.offset)
			}
			if want := "unknown member at " + c.pointer; got.Detail != want {
				t.Errorf("got detail %q, want %q", got.Detail, want)
			}
		})
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestDecodeMediaType(t *testing.T) {
	app, _ := decodeApp()
	for contentType, named := range map[string]string{
		"":                                  "none",
		"text/plain":                        "text/plain",
		"text/json":                         "text/json",
		"application/json; charset=latin1":  "latin1",
		"application/json; charset":         "charset",
		"application/x-www-form-urlencoded": "form",
		"application/jsonx":                 "jsonx",
		"application/json, text/plain":      "text/plain",
		"application/problem+jsonish":       "jsonish",
		";":                                 ";",
	} {
		var headers []string
		if contentType != "" {
			headers = []string{"Content-Type", contentType}
		}
		w := doBody(app, "POST", "/", `{"id":1}`, headers...)
		got := readRefusal(t, w)
		if w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: got status %d, want 415", contentType, w.Code)
		}
		wantContains(t, "detail", got.Detail, "is "+contentType, named, "application/json")
	}
}

func TestDecodeEmptyAndLarge(t *testing.T) {
	app, _ := decodeApp()
	for _, body := range []string{"", " \r\n\t"} {
		got := readRefusal(t, doBody(app, "POST", "/", body, "Content-Type", "application/json"))
		if got.Status != 400 || !strings.Contains(got.Detail, "empty") {
			t.Errorf("body %q: got %+v", body, got)
		}
	}
	over := `{"name":"` + strings.Repeat("x", 1<<16) + `"}`
	got := readRefusal(t, doBody(app, "POST", "/", over, "Content-Type", "application/json"))
	if got.Status != 413 || !strings.Contains(got.Detail, "65536 bytes") {
		t.Errorf("too large: got %+v", got)
	}
	unannounced := httptest.NewRequest("POST", "/", struct{ *strings.Reader }{strings.NewReader(over)})
	unannounced.ContentLength = -1
	unannounced.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, unannounced)
	if got := readRefusal(t, w); got.Status != 413 {
		t.Errorf("too large, unannounced: got %+v", got)
	}
}

// Code can inspect the error of Decode with errors.As.
func TestDecodeError(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	var err error
	app.Post("/", func(r *dunlin.Request) dunlin.Response {
		var o order
		o, err = dunlin.Decode[order](r)
		if o.ID != 0 {
			t.Errorf("Decode returned %+v and an error, want the zero value", o)
		}
		return dunlin.Error(err)
	})
	doBody(app, "POST", "/", `{"id":1,"level":"low"}`, "Content-Type", "application/json")
	var problem *dunlin.ProblemDetails
	if !errors.As(err, &problem) || problem.Status != 400 || problem.Extensions["pointer"] != "/level" {
		t.Fatalf("got error %#v", err)
	}
	wantContains(t, "error", err.Error(), "secret detail of level")
}

func TestDecodeOtherTypes(t *testing.T) {
	decode := func(act dunlin.Action, body string) *httptest.ResponseRecorder {
		app, _ := newApp(dunlin.Config{})
		app.Post("/", act)
		return doBody(app, "POST", "/", body, "Content-Type", "application/json")
	}
	type tree struct{ Kids []tree }
	type embedsInt struct{ level }
	for _, c := range []struct {
		name, body, pointer string
		act                 dunlin.Action
	}{
		{"slice", `[1,"x"]`, "/1", decodeInto[[]int]},
		{"map", `{"a":1,"b":[]}`, "/b", decodeInto[map[string]int]},
		{"string", `7`, "", decodeInto[string]},
		{"pointer", `{"zip":""}`, "/zip", decodeInto[*address]},
		{"recursive", `{"Kids":[{"Kids":[{},{"kids":7}]}]}`, "/Kids/0/Kids/1/kids", decodeInto[tree]},
		{"embedded that is no struct", `{"level":"low"}`, "", decodeInto[embedsInt]},
		{"interface with methods", `{"a":1}`, "/a", decodeInto[map[string]error]},
		{"channel", `[1]`, "/0", decodeInto[[]chan int]},
	} {
		w := decode(c.act, c.body)
		if got := readRefusal(t, w); got.Status != 400 || deref(got.Pointer) != c.pointer {
			t.Errorf("%s: got %s, want pointer %q", c.name, w.Body, c.pointer)
		}
	}
	if w := decode(decodeInto[any], `[1,{"a":null}]`); w.Body.String() != "[1 map[a:<nil>]]" {
		t.Errorf("any: got %s", w.Body)
	}
}

func decodeInto[T any](r *dunlin.Request) dunlin.Response {
	v, err := dunlin.Decode[T](r)
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Text(fmt.Sprint(v))
}

// Any malformed body is answered, and the reported offset is within the body.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":1}`, `{"id":"x"}`, `{"to":{"zip":128}}`, `{"by~id/":{"x":true}}`, `{"items":[{"city":1}]}`, `{"name":"\u00`,
		`{"grid":[[1],[256]],"level":{}}`, `{"count":"x"}`, `[`, `01`, "\xef\xbb\xbf", `{"any":[[[`, `{"when":"","due":null}`, `nul`, `-`,
	} {
		f.Add([]byte(seed))
	}
	app, _ := newApp(dunlin.Config{})
	app.Post("/", decodeInto[order])
	f.Fuzz(func(t *testing.T, body []byte) {
		w := doBody(app, "POST", "/", string(body), "Content-Type", "application/json")
		if w.Code == 200 {
			return
		}
		got := readRefusal(t, w)
		if w.Code != 400 {
			t.Fatalf("got status %d: %s", w.Code, w.Body)
		}
		wantLacks(t, "answer", w.Body.String(), "secret", "json:")
		switch {
		case got.Offset == nil:
			if strings.Trim(string(body), " \t\r\n") != "" { // otherwise it is empty
				t.Errorf("%q: got no position in %s", body, w.Body)
			}
		case *got.Offset > len(body) || *got.Offset == len(body) && json.Valid(body):
			t.Errorf("%q: offset %d beyond the body", body, *got.Offset)
		case strings.HasPrefix(got.Detail, "invalid JSON") == json.Valid(body):
			t.Errorf("%q: valid is %v, and yet: got %s", body, json.Valid(body), got.Detail)
		}
	})
}
