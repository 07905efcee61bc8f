package typed_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

type size string

func (size) Enum() []size { return []size{"small", "large"} }

type address struct {
	City string `json:"city" minLength:"1"`
	Zip  string `json:"zip,omitempty" pattern:"^[0-9]{5}$"`
}

type order struct {
	Name   string                    `json:"name" minLength:"1" maxLength:"5"`
	Mail   typed.Nullable[string]    `json:"mail,omitzero" format:"email"`
	Note   typed.Optional[string]    `json:"note,omitzero" maxLength:"3"`
	Count  int32                     `json:"count" minimum:"1" maximum:"10" multipleOf:"2"`
	Price  float64                   `json:"price,omitempty" exclusiveMinimum:"0"`
	Size   size                      `json:"size" default:"small"`
	Lines  []address                 `json:"lines,omitempty" minItems:"1" maxItems:"2" uniqueItems:"true"`
	ByKey  map[string]uint8          `json:"by_key,omitempty" maxProperties:"2" propertyNames.pattern:"^[a-z]+$" additionalProperties.maximum:"9"`
	Parent *order                    `json:"parent,omitempty" dependentRequired:"at"`
	At     typed.Optional[time.Time] `json:"at,omitzero"`
	Any    any                       `json:"any,omitempty"`
	Raw    json.RawMessage           `json:"raw,omitempty"`
	Bytes  []byte                    `json:"bytes,omitempty"`
	ID     int64                     `json:"id,omitempty,string"`
	Flag   *bool                     `json:"flag,omitempty"`
}

type takeOrder struct{ Body order }

// orders returns an app that accepts orders, and the last accepted order.
func orders() (*dunlin.App, *order) {
	app, last := quiet(), new(order)
	typed.Post(app, "/", func(_ *dunlin.Request, in takeOrder) (typed.None, error) {
		*last = in.Body
		return typed.None{}, nil
	})
	return app, last
}

func TestBody(t *testing.T) {
	app, got := orders()
	expect(t, post(t, app, "/", `{"name":"é😀xyz","count":2.0,"mail":null,"lines":[{"city":"A"},{"city":"B","zip":"12345"}],
		"by_key":{"a":1e0},"parent":{"name":"p","count":4},"at":"2026-01-02T03:04:05.5+01:00","any":[1,{"a":null}],"raw": {"x" :1},
		"bytes":"aGk=","id":"-12","flag":null,"price":1e-3}`), 204, "")
	if got.Name != "é😀xyz" || got.Count != 2 || !got.Mail.Null || got.Mail.Set || len(got.Lines) != 2 || got.Lines[1].Zip != "12345" ||
		got.ByKey["a"] != 1 || got.Parent == nil || got.Parent.Count != 4 || got.Parent.Size != "small" || !got.At.Set ||
		fmt.Sprint(got.Any) != "[1 map[a:<nil>]]" || string(got.Raw) != `{"x" :1}` || string(got.Bytes) != "hi" || got.ID != -12 ||
		got.Size != "small" || got.Note.Set || got.Price != 0.001 {
		t.Errorf("got %+v", got)
	}
	expect(t, post(t, app, "/", `{"name":"n","count":10,"mail":"a@b.example","note":"","size":"large"}`), 204, "")
	if got.Mail.Value != "a@b.example" || !got.Note.Set || got.Size != "large" || got.Lines != nil {
		t.Errorf("got %+v", got)
	}
}

// The letters of a time may be in lower case (RFC 3339), which encoding/json refuses.
func TestTimes(t *testing.T) {
	type times struct {
		At   time.Time                 `json:"at"`
		List []*time.Time              `json:"list,omitempty"`
		Opt  typed.Optional[time.Time] `json:"opt,omitzero"`
		Null typed.Nullable[time.Time] `json:"null,omitzero"`
		Text string                    `json:"text,omitempty" format:"date-time"`
	}
	app := quiet()
	var got times
	typed.Post(app, "/{at}", func(_ *dunlin.Request, in struct {
		At   time.Time `path:"at"`
		Body times
	}) (typed.None, error) {
		got = in.Body
		if !in.At.Equal(in.Body.At) {
			t.Errorf("got %s in the path and %s in the body", in.At, in.Body.At)
		}
		return typed.None{}, nil
	})
	expect(t, post(t, app, "/2026-01-02t03:04:05z", `{"at":"2026-01-02t03:04:05z","list":["2026-01-02T03:04:05z","2026-01-02\u007403:04:05Z"],
		"opt":"2026-01-02T03:04:05.50z","null":"2026-01-02t03:04:05+01:00","text":"2026-01-02t03:04:05z"}`), 204, "")
	want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if got.At != want || len(got.List) != 2 || *got.List[0] != want || *got.List[1] != want || got.Opt.Value != want.Add(time.Second/2) ||
		!got.Null.Value.Equal(want.Add(-time.Hour)) || got.Text != "2026-01-02t03:04:05z" {
		t.Errorf("got %+v", got)
	}
	expectViolations(t, post(t, app, "/2026-01-02T03:04:05z", `{"at":"2026-01-02 03:04:05z","text":"2026-01-02T03:04:60Z"}`),
		"body #/at format date-time", "body #/text format date-time")
}

func TestWrongBodies(t *testing.T) {
	app, _ := orders()
	deep := strings.Repeat(`{"name":"n","count":2,"at":"2026-01-02T03:04:05Z","parent":`, 5)
	for _, c := range []struct{ body, want string }{
		{`{}`, "body #/name required, body #/count required"},
		{`{"name":"","count":0}`, "body #/name minLength 1, body #/count minimum 1"},
		{`{"name":"abcdef","count":11}`, "body #/name maxLength 5, body #/count maximum 10, body #/count multipleOf 2"},
		{`{"name":"n","count":2,"extra":{"a":[1]},"Name":"x"}`, "body #/extra additionalProperties, body #/Name additionalProperties"},
		{`{"name":"n","name":"m","count":2}`, "body #/name duplicate"},
		{`{"name":"n","n\u0061me":"m","count":2}`, "body #/name duplicate"},
		{`{"name":null,"count":null}`, "body #/name type string, body #/count type integer"},
		{`{"name":1,"count":"2"}`, "body #/name type string, body #/count type integer"},
		{`{"name":[1,[2]],"count":{"a":{}}}`, "body #/name type string, body #/count type integer"},
		{`{"name":"n","count":2.5}`, "body #/count type integer"},
		{`{"name":"n","count":2147483648}`, "body #/count format int32"},
		{`{"name":"n","count":1e400}`, "body #/count format int32"},
		{`{"name":"n","count":2,"price":1e400}`, "body #/price format double"},
		{`{"name":"n","count":2,"any":{"a":[1e400]}}`, "body #/any/a/0 format double"},
		{`{"name":"n","count":2,"price":0}`, "body #/price exclusiveMinimum 0"},
		{`{"name":"n","count":2,"mail":"nobody"}`, "body #/mail format email"},
		{`{"name":"n","count":2,"note":null}`, "body #/note type string"},
		{`{"name":"n","count":2,"size":"medium"}`, `body #/size enum "small", "large"`},
		{`{"name":"n","count":2,"lines":[]}`, "body #/lines minItems 1"},
		{`{"name":"n","count":2,"lines":null}`, "body #/lines type array"},
		{`{"name":"n","count":2,"lines":[{"city":""},{"zip":"x"},3]}`,
			"body #/lines/0/city minLength 1, body #/lines/1/zip pattern ^[0-9]{5}$, body #/lines/1/city required, body #/lines/2 type object, body #/lines maxItems 2"},
		{`{"name":"n","count":2,"lines":[{"city":"a"},{"city":"\u0061"}]}`, "body #/lines uniqueItems 1"},
		{`{"name":"n","count":2,"by_key":{"a":10,"B":256,"c":1}}`,
			"body #/by_key/a maximum 9, body #/by_key/B pattern ^[a-z]+$, body #/by_key/B format uint8, body #/by_key maxProperties 2"},
		{`{"name":"n","count":2,"by_key":{"a":1,"a":2}}`, "body #/by_key/a duplicate"},
		{`{"name":"n","count":2,"parent":null}`, "body #/at dependentRequired parent"},
		{`{"name":"n","count":2,"at":"2026-13-02T03:04:05Z"}`, "body #/at format date-time"},
		{`{"name":"n","count":2,"bytes":"a"}`, "body #/bytes format byte"},
		{`{"name":"n","count":2,"id":12}`, "body #/id type string"},
		{`{"name":"n","count":2,"id":"12x"}`, "body #/id pattern ^-?(0|[1-9][0-9]*)$"},
		{`{"name":"n","count":2,"flag":"x"}`, "body #/flag type boolean"},
		{"{\"name\":\"\xff\",\"count\":2}", "body #/name utf8"},
		{`{"name":"\ud800","count":2}`, "body #/name utf8"},
		{`{"name":"n","a~/b c":1,"count":2}`, "body #/a~0~1b%20c additionalProperties"},
		{deep + `{"name":"n","count":1}` + strings.Repeat("}", 5), "body #" + strings.Repeat("/parent", 5) + "/count multipleOf 2"},
		{`[]`, "body # type object"},
		{`"x"`, "body # type object"},
		{`null`, "body # type object"},
		{``, "body # empty"},
		{` `, "body # empty"},
		{`{"name":"n",}`, "body # syntax"},
		{`{"name":"n" "count":1}`, "body # syntax"},
		{`{"name":"","count":01}`, "body #/name minLength 1, body #/count minimum 1, body #/count syntax"},
		{`{"name":"n","count":2}x`, "body # syntax"},
		{`{"name":"n","count":`, "body #/count syntax"},
		{`{"name":"a` + "\n" + `"}`, "body #/name syntax"},
		{`{"name":"n","count":2,"price":1` + strings.Repeat("0", 1000) + "}", "body #/price numberLength 1000"},
		{`{"name":"n","count":2,"any":-` + strings.Repeat("1", 1000) + "}", "body #/any numberLength 1000"},
		{`{"any":` + strings.Repeat("[", 10000), "body #/any" + strings.Repeat("/0", 501) + "/%E2%80%A6 depth 1000"},
	} {
		t.Run(c.body[:min(len(c.body), 60)], func(t *testing.T) {
			want := strings.Split(c.want, ", body #")
			for i := range want[1:] {
				want[i+1] = "body #" + want[i+1]
			}
			expectViolations(t, post(t, app, "/", c.body), want...)
		})
	}
}

// The report of ten thousand unknown members is limited.
func TestManyViolations(t *testing.T) {
	app, _ := orders()
	var b strings.Builder
	b.WriteString(`{"name":"n"`)
	for i := range 10_000 {
		fmt.Fprintf(&b, `,"x%d":%d`, i, i)
	}
	a := post(t, app, "/", b.String()+"}")
	if n := len(a.violations(t)); n != 100 || !strings.Contains(a.body, "more than 100 places") {
		t.Errorf("got %d violations: %.200s", n, a.body)
	}
}

// The number of members and elements of a body is limited.
func TestMaxElements(t *testing.T) {
	ints := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	objects := func(n int) string { return "[" + strings.Repeat("{},", n-1) + "{}]" }
	for _, c := range []struct {
		name       string
		config     typed.Config
		body, want string
	}{
		{"default", typed.Config{}, ints(100_000), ""},
		{"default, exceeded", typed.Config{}, ints(100_001), "body #/100000 elements 100000"},
		{"default, objects", typed.Config{}, objects(100_001), "body #/100000 elements 100000"},
		{"own", typed.Config{MaxElements: 3}, `[1,[2]]`, ""},
		{"configured, exceeded", typed.Config{MaxElements: 3}, `[1,[2,3]]`, "body #/1/1 elements 3"},
		{"configured, members", typed.Config{MaxElements: 3}, `{"a":1,"b":{"c":2,"d":3}}`, "body #/b/d elements 3"},
		{"larger", typed.Config{MaxElements: 1_000_000}, ints(100_001), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := quiet()
			typed.Configure(app, c.config)
			typed.Post(app, "/", func(*dunlin.Request, struct{ Body any }) (typed.None, error) { return typed.None{}, nil })
			if a := post(t, app, "/", c.body); c.want != "" {
				expectViolations(t, a, c.want)
			} else {
				expect(t, a, 204, "")
			}
		})
	}
}

func TestMediaTypes(t *testing.T) {
	app, _ := orders()
	for kind, status := range map[string]int{
		"application/json": 204, "application/json; charset=UTF-8": 204, "application/merge-patch+json": 204,
		"text/plain": 415, "application/xml": 415, "application/json; charset=latin1": 415, "": 415, "x": 415,
	} {
		var a answer
		if kind == "" {
			a = ask(t, app, "POST /", "", `{"name":"n","count":2}`)
		} else {
			a = ask(t, app, "POST /", "Content-Type: "+kind, "", `{"name":"n","count":2}`)
		}
		if a.status != status {
			t.Errorf("Content-Type %q: got %d %s, want %d", kind, a.status, a.body, status)
		}
	}
}

func TestInvalidStatusAndMessages(t *testing.T) {
	app := quiet()
	typed.Configure(app, typed.Config{InvalidStatus: 422, Message: func(_ *dunlin.Request, v typed.Violation) string {
		if v.Rule == "minLength" {
			return "mindestens " + v.Limit
		}
		return ""
	}})
	sink[takeOrder](app, "POST", "/")
	a := post(t, app, "/", `{"name":"","count":3}`)
	if a.status != 422 || !strings.Contains(a.body, `"detail":"mindestens 1"`) || !strings.Contains(a.body, `"detail":"must be a multiple of 2"`) {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if p := panics(func() { typed.Configure(app, typed.Config{}) }); !strings.Contains(p, "before") {
		t.Errorf("second Configure: got panic %q", p)
	}
	if p := panics(func() { typed.Configure(quiet(), typed.Config{InvalidStatus: 404}) }); !strings.Contains(p, "400 or 422") {
		t.Errorf("InvalidStatus 404: got panic %q", p)
	}
}

func TestTranscode(t *testing.T) {
	app := quiet()
	typed.Configure(app, typed.Config{Transcode: map[string]func(dst, body []byte) ([]byte, error){
		"text/x-name": func(dst, body []byte) ([]byte, error) {
			if len(body) > 3 {
				return nil, fmt.Errorf("too long")
			}
			return fmt.Appendf(dst, `{"name":%q,"count":2}`, body), nil
		},
	}})
	sink[takeOrder](app, "POST", "/")
	expect(t, ask(t, app, "POST /", "Content-Type: text/x-name; v=1", "", "abc"), 204, "")
	expectViolations(t, ask(t, app, "POST /", "Content-Type: text/x-name", "", "abcd"), "body # syntax")
	if a := ask(t, app, "POST /", "Content-Type: text/y", "", "abc"); a.status != 415 || !strings.Contains(a.body, "application/json or text/x-name") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestOptionalAndRawBodies(t *testing.T) {
	app := quiet()
	type optional struct{ Body *address }
	typed.Post(app, "/optional", func(_ *dunlin.Request, in optional) (bool, error) { return in.Body != nil, nil })
	expect(t, ask(t, app, "POST /optional"), 200, "false")
	expect(t, post(t, app, "/optional", `{"city":"a"}`), 200, "true")
	expectViolations(t, post(t, app, "/optional", `{}`), "body #/city required")

	type raw struct {
		Body typed.Raw `contentType:"image/png"`
	}
	typed.Post(app, "/raw", func(_ *dunlin.Request, in raw) (int, error) { return len(in.Body), nil })
	expect(t, ask(t, app, "POST /raw", "Content-Type: image/png", "", "12345"), 200, "5")
	expect(t, ask(t, app, "POST /raw", "Content-Type: image/gif", "", "12345"), 415,
		`{"title":"Unsupported Media Type","status":415,"detail":"the media type of the request body must be image/png"}`)

	type list struct {
		Body []int `minItems:"2" items.maximum:"5"`
	}
	sink[list](app, "POST", "/list")
	expect(t, post(t, app, "/list", `[1,2]`), 204, "")
	expectViolations(t, post(t, app, "/list", `[6]`), "body #/0 maximum 5", "body # minItems 2")
}

type period struct {
	From  int `json:"from"`
	Until int `json:"until"`
}

func (p *period) Validate(c *typed.Checks) {
	c.Check(p.From < p.Until, "#/until", "order", "must be after from")
}

type booking struct {
	Room string `query:"room"`
	Body struct {
		Periods []period          `json:"periods"`
		ByName  map[string]period `json:"by_name,omitempty"`
		Main    *period           `json:"main,omitempty"`
	}
}

func (b *booking) Validate(c *typed.Checks) {
	c.Parameter(b.Room != "closet", "query", "room", "room", "has no door")
}

func TestValidate(t *testing.T) {
	app := quiet()
	sink[booking](app, "POST", "/")
	expect(t, post(t, app, "/?room=a", `{"periods":[{"from":1,"until":2}]}`), 204, "")
	expectViolations(t, post(t, app, "/?room=closet",
		`{"periods":[{"from":1,"until":2},{"from":2,"until":2}],"by_name":{"x":{"from":3,"until":1}},"main":{"from":1,"until":0}}`),
		"body #/periods/1/until order", "body #/by_name/x/until order", "body #/main/until order", "query room room")
	expectViolations(t, post(t, app, "/?room=closet", `{"periods":[{"from":2}]}`), "body #/periods/0/until required")
}
