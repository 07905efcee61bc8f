package typed_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/typed"
)

// attacked has a parameter of every kind, badTree a body, and badForm a form.
type attacked struct {
	ID    int32                     `path:"id" minimum:"1"`
	Slug  string                    `path:"slug" pattern:"^[a-z-]+$"`
	Limit int                       `query:"limit" default:"20" minimum:"1" maximum:"100"`
	IDs   []int                     `query:"ids,comma" maxItems:"3" uniqueItems:"true" items.minimum:"1"`
	Tag   []string                  `query:"tag" items.maxLength:"3"`
	Since typed.Optional[time.Time] `query:"since"`
	Wait  time.Duration             `query:"wait" default:"1s"`
	Ratio *float64                  `query:"ratio" minimum:"0" exclusiveMaximum:"1"`
	Flag  bool                      `query:"flag" default:"false"`
	Small uint8                     `query:"small" default:"1"`
	From  netip.Addr                `query:"from" default:"127.0.0.1"`
	Sort  string                    `query:"sort" default:"name" enum:"name,age"`
	Need  string                    `query:"need" minLength:"2"`
	Key   string                    `header:"X-Key" pattern:"^k"`
	List  []uint16                  `header:"X-List" maxItems:"2"`
	SID   typed.Optional[int]       `cookie:"sid"`
}

type badTree struct {
	Name string             `json:"name"`
	Kids []badTree          `json:"kids,omitempty"`
	Map  map[string]badTree `json:"map,omitempty"`
	Next *badTree           `json:"next,omitempty"`
	Leaf *struct {
		N   float64   `json:"n"`
		F   float32   `json:"f,omitempty"`
		At  time.Time `json:"at,omitzero"`
		Raw []byte    `json:"raw,omitempty"`
		Any any       `json:"any,omitempty"`
	} `json:"leaf,omitempty"`
}

type badForm struct {
	Name string     `form:"name" minLength:"2"`
	File typed.File `form:"file" maxLength:"10" contentType:"image/png"`
}

// sent sends a request over the network and returns the answer.
func sent(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, suite.Body(t, resp)}
}

// Both engines answer invalid input with a problem that names the violations.
func TestBadInput(t *testing.T) {
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
		t.Run(engine.String(), func(t *testing.T) {
			if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
				t.Skip("the loop engine needs Linux")
			}
			t.Cleanup(http.DefaultClient.CloseIdleConnections)
			base := serveOn(t, engine, func(app *dunlin.App) {
				sink[attacked](app, "GET", "/p/{id}/{slug}")
				sink[struct{ Body badTree }](app, "POST", "/tree")
				sink[badForm](app, "POST", "/form")
				sink[struct{ Body badTree }](app, "POST", "/small/tree").Route().MaxBody(1000)
				sink[badForm](app, "POST", "/small/form").Route().MaxBody(1000)
			})
			t.Run("parameters", func(t *testing.T) { wrongParameters(t, base) })
			t.Run("types", func(t *testing.T) { wrongTypes(t, base) })
			t.Run("bodies", func(t *testing.T) { wrongTexts(t, base) })
			t.Run("forms", func(t *testing.T) { wrongForms(t, base) })
		})
	}
}

// wrongParameters sends an invalid value for each parameter in turn, and then for all parameters.
func wrongParameters(t *testing.T, base string) {
	const good = "/p/7/abc?need=xy"
	if a := sent(t, "GET", base+good, "", "X-Key: k"); a.status != 204 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	for query, want := range map[string]string{
		"limit=0": "limit minimum 1", "limit=x": "limit type integer", "limit=1&limit=2": "limit single", "ids=1,2,3,4": "ids maxItems 3", "ids=1,1": "ids uniqueItems 1",
		"ids=1,x": "ids #/1 type integer", "ids=1,0": "ids #/1 minimum 1", "tag=a&tag=abcd": "tag #/1 maxLength 3", "tag=%ff": "tag #/0 utf8", "tag=%zz": "tag format uri",
		"since=x": "since format date-time", "wait=x": "wait format go-duration", "ratio=1": "ratio exclusiveMaximum 1", "ratio=1e400": "ratio format double", "flag=1": "flag type boolean",
		"small=256": "small format uint8", "small=-1": "small format uint8", "from=x": "from type Addr", "sort=size": `sort enum "name", "age"`,
	} {
		expectViolations(t, sent(t, "GET", base+good+"&"+query, "", "X-Key: k"), "query "+want)
	}
	expectViolations(t, sent(t, "GET", base+"/p/0/abc?need=xy", "", "X-Key: k"), "path id minimum 1")
	expectViolations(t, sent(t, "GET", base+"/p/99999999999/abc?need=xy", "", "X-Key: k"), "path id format int32")
	expectViolations(t, sent(t, "GET", base+"/p/1/A?need=xy", "", "X-Key: k"), "path slug pattern ^[a-z-]+$")
	expectViolations(t, sent(t, "GET", base+"/p/1/a", "", "X-Key: k"), "query need required")
	expectViolations(t, sent(t, "GET", base+good, ""), "header X-Key required")
	expectViolations(t, sent(t, "GET", base+good, "", "X-Key: x", "X-List: 1,x"), "header X-Key pattern ^k", "header X-List #/1 type integer")
	expectViolations(t, sent(t, "GET", base+good, "", "X-Key: k", "Cookie: sid=x"), "cookie sid type integer")
	expectViolations(t, sent(t, "GET", base+"/p/x/A?limit=x&ids=0&tag=abcd&since=x&wait=x&ratio=2&flag=x&small=x&from=x&sort=x", "", "X-List: 1,2,3", "Cookie: sid=x"),
		"path id type integer", "path slug pattern ^[a-z-]+$", "query limit type integer", "query since format date-time", "query wait format go-duration", "query ratio exclusiveMaximum 1",
		"query flag type boolean", "query small type integer", "query from type Addr", `query sort enum "name", "age"`, "query ids #/0 minimum 1", "query tag #/0 maxLength 3", "query need required",
		"header X-Key required", "header X-List maxItems 2", "cookie sid type integer")
}

// wrongTypes replaces each value of a body with a value of another type.
func wrongTypes(t *testing.T, base string) {
	var root any
	if err := json.Unmarshal([]byte(`{"name":"a","kids":[{"name":"b","kids":[{"name":"c"}]}],"map":{"k":{"name":"d","next":{"name":"e"}}},"leaf":{"n":1,"at":"2026-01-02T03:04:05Z"}}`), &root); err != nil {
		t.Fatal(err)
	}
	places := 0
	var walk func(v any, pointer string, set func(any))
	walk = func(v any, pointer string, set func(any)) {
		places++
		for _, wrong := range []any{nil, true, "text", 1.5, []any{}, map[string]any{}} {
			set(wrong)
			body, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			switch a := sent(t, "POST", base+"/tree", string(body), "Content-Type: application/json"); {
			case a.status == 204: // it is valid there
			case a.status != 400 || !strings.Contains(a.body, `"pointer":"`+pointer):
				t.Errorf("%v at %s: got %d %s", wrong, pointer, a.status, a.body)
			}
			set(v)
		}
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name], pointer+"/"+name, func(w any) { v[name] = w })
			}
		case []any:
			for i := range v {
				walk(v[i], pointer+"/0", func(w any) { v[i] = w })
			}
		}
	}
	walk(root, "#", func(v any) { root = v })
	if places != 16 {
		t.Errorf("got %d values", places)
	}
}

// wrongTexts sends malformed and oversized bodies.
func wrongTexts(t *testing.T, base string) {
	var many strings.Builder
	for i := range 10_000 {
		many.WriteString(`,"f` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + `":1`)
	}
	deep := strings.Repeat(`{"name":"a","next":`, 10_000)
	for _, c := range []struct {
		name, body, kind string
		status           int
		want             string
	}{
		{"10,000 fields", `{"name":"a"` + many.String() + "}", "", 400, "#/fa"},
		{"10,000 duplicates", `{"name":"a"` + strings.Repeat(`,"name":"a"`, 10_000) + "}", "", 400, `"duplicate"`},
		{"depth", deep + `{"name":"a"}` + strings.Repeat("}", 10_000), "", 400, `"depth"`},
		{"depth, truncated", deep, "", 400, `"depth"`},
		{"depth of a member of type any", `{"name":"a","leaf":{"n":1,"any":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}}", "", 400, `"depth"`},
		{"large number", `{"name":"a","leaf":{"n":1e400}}`, "", 400, `"pointer":"#/leaf/n","rule":"format"`},
		{"large float32", `{"name":"a","leaf":{"n":1,"f":1e39}}`, "", 400, `"pointer":"#/leaf/f","rule":"format"`},
		{"large number in a member of type any", `{"name":"a","leaf":{"n":1,"any":[-1e400]}}`, "", 400, `"pointer":"#/leaf/any/0","rule":"format"`},
		{"UTF-8", "{\"name\":\"\xff\"}", "", 400, `"pointer":"#/name","rule":"utf8"`},
		{"surrogate", `{"name":"\ud800"}`, "", 400, `"pointer":"#/name","rule":"utf8"`},
		{"duplicate", `{"name":"a","name":"b"}`, "", 400, `"pointer":"#/name","rule":"duplicate"`},
		{"byte order mark", "\ufeff{}", "", 400, `"syntax"`},
		{"trailing comma", `{"name":"a",}`, "", 400, `"pointer":"#","rule":"syntax","detail":"invalid JSON at offset 12: unexpected byte '}'"`},
		{"no comma", "{\n\t\"name\": \"é\" \"next\": {}}", "", 400, `"pointer":"#","rule":"syntax","detail":"invalid JSON at offset 16 (line 2, column 14): unexpected byte '\"'`},
		{"no comma in a member", "{\r\n\r\n\"leaf\":{\"n\":1 \"f\":2}}", "", 400, `"pointer":"#/leaf","rule":"syntax","detail":"invalid JSON at offset 19 (line 3, column 15)`},
		{"no comma in an array", `{"leaf":{"n":1,"any":[1 2]}}`, "", 400, `"pointer":"#/leaf/any","rule":"syntax"`},
		{"truncated name", `{"leaf":{"n":1,"an`, "", 400, `"pointer":"#/leaf","rule":"syntax","detail":"invalid JSON at offset 18: the text ends`},
		{"no colon", `{"leaf":{"n" 1}}`, "", 400, `"pointer":"#/leaf/n","rule":"syntax"`},
		{"malformed number", `{"leaf":{"n":1.2.3}}`, "", 400, `"pointer":"#/leaf/n","rule":"syntax"`},
		{"truncated literal", `{"leaf":{"n":tru}}`, "", 400, `"pointer":"#/leaf/n","rule":"syntax"`},
		{"nothing", "", "", 400, `"empty"`},
		{"text", "{}", "text/plain", 415, "application/json"},
		{"charset", "{}", "application/json; charset=utf-16", 415, "application/json"},
		{"no media type", "{}", ";;", 415, "application/json"},
	} {
		kind := c.kind
		if kind == "" {
			kind = "application/json"
		}
		a := sent(t, "POST", base+"/tree", c.body, "Content-Type: "+kind)
		if a.status != c.status || !strings.Contains(a.body, c.want) || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %.300s", c.name, a.status, a.body)
		}
	}
	if a := sent(t, "POST", base+"/small/tree", `{"name":"`+strings.Repeat("a", 1000)+`"}`, "Content-Type: application/json"); a.status != 413 {
		t.Errorf("body above the limit: got %d %s", a.status, a.body)
	}
}

func wrongForms(t *testing.T, base string) {
	for _, c := range []struct {
		status int
		fields []string
		want   []string
	}{
		{413, []string{"name=Ann", "file@a.png;image/png=" + pngSignature + "123"}, []string{"form file maxLength 10"}},
		{415, []string{"name=Ann", "file@a.gif;image/gif=1"}, []string{"form file contentMediaType image/png"}},
		{400, []string{"name=A", "file@a.png;image/png=" + pngSignature}, []string{"form name minLength 2"}},
		{400, []string{"name=A\xff", "file@a.png;image/png=" + pngSignature}, []string{"form name utf8"}},
		{400, nil, []string{"form name required", "form file required"}},
	} {
		kind, body := form(t, c.fields...)
		expectInvalid(t, sent(t, "POST", base+"/form", body, "Content-Type: "+kind), c.status, c.want...)
	}
	kind, body := form(t, "name=Ann", "file@a.png;image/png="+strings.Repeat("x", 1000))
	if a := sent(t, "POST", base+"/small/form", body, "Content-Type: "+kind); a.status != 413 {
		t.Errorf("file above the limit: got %d %s", a.status, a.body)
	}
	if a := sent(t, "POST", base+"/form", "name=Ann", "Content-Type: application/x-www-form-urlencoded"); a.status != 415 {
		t.Errorf("form without files: got %d %s", a.status, a.body)
	}
}
