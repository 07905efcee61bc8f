package typed_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

type paging struct {
	Limit int    `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Sort  string `query:"sort" enum:"name,age" default:"name"`
}

type everyParam struct {
	paging
	ID     int64                     `path:"id"`
	Rest   string                    `path:"rest"`
	Dry    bool                      `query:"dry" default:"false"`
	Tags   []string                  `query:"tag" maxItems:"3" items.minLength:"2"`
	IDs    []int8                    `query:"ids,comma" uniqueItems:"true"`
	Since  typed.Optional[time.Time] `query:"since"`
	Wait   *time.Duration            `query:"wait"`
	Ratio  float32                   `query:"ratio" default:"0.5" exclusiveMaximum:"1"`
	From   netip.Addr                `query:"from" default:"127.0.0.1"`
	Key    typed.Optional[string]    `header:"Idempotency-Key" maxLength:"8"`
	Accept []string                  `header:"X-List"`
	Theme  string                    `cookie:"theme" default:"light" pattern:"^[a-z]+$"`
}

func TestParameters(t *testing.T) {
	app := quiet()
	var got everyParam
	typed.Get(app, "/things/{id:int}/{rest...}", func(_ *dunlin.Request, in everyParam) (typed.None, error) {
		got = in
		return typed.None{}, nil
	})
	expect(t, ask(t, app, "GET /things/7/a/b"), 204, "")
	if got.ID != 7 || got.Rest != "a/b" || got.Limit != 20 || got.Sort != "name" || got.Dry || got.Tags != nil || got.Since.Set ||
		got.Wait != nil || got.Ratio != 0.5 || got.From != netip.MustParseAddr("127.0.0.1") || got.Key.Set || got.Theme != "light" {
		t.Errorf("defaults: got %+v", got)
	}
	expect(t, ask(t, app, "GET /things/-7/?limit=5&dry=true&tag=ab&tag=c%26d&ids=1,2,3&since=2026-01-02T03:04:05Z&wait=1m30s&ratio=-1e-1&from=::1&sort=age&unknown=1",
		"Idempotency-Key: k", "X-List: a, b", "X-List: c", "Cookie: theme=dark"), 204, "")
	if got.ID != -7 || got.Limit != 5 || !got.Dry || strings.Join(got.Tags, "|") != "ab|c&d" || len(got.IDs) != 3 || got.IDs[2] != 3 ||
		!got.Since.Set || got.Since.Value.Minute() != 4 || got.Wait == nil || *got.Wait != 90*time.Second || got.Ratio != -0.1 ||
		got.From.String() != "::1" || got.Sort != "age" || got.Key.Value != "k" || strings.Join(got.Accept, "") != "abc" || got.Theme != "dark" {
		t.Errorf("values: got %+v", got)
	}
}

func TestWrongParameters(t *testing.T) {
	app := quiet()
	sink[everyParam](app, "GET", "/things/{id}/{rest...}")
	for _, c := range []struct {
		line string
		want []string
	}{
		{"GET /things/x/", []string{"path id type integer"}},
		{"GET /things/9223372036854775808/", []string{"path id format int64"}},
		{"GET /things/1/?limit=0", []string{"query limit minimum 1"}},
		{"GET /things/1/?limit=101", []string{"query limit maximum 100"}},
		{"GET /things/1/?limit=", []string{"query limit type integer"}},
		{"GET /things/1/?limit=%2B5", []string{"query limit type integer"}},
		{"GET /things/1/?limit=99999999999999999999", []string{"query limit format " + intFormat}},
		{"GET /things/1/?limit=1&limit=2&limit=3", []string{"query limit single"}},
		{"GET /things/1/?limit=%zz", []string{"query limit format uri"}},
		{"GET /things/1/?sort=size", []string{`query sort enum "name", "age"`}},
		{"GET /things/1/?dry=yes", []string{"query dry type boolean"}},
		{"GET /things/1/?dry", []string{"query dry type boolean"}},
		{"GET /things/1/?tag=a&tag=bc", []string{"query tag #/0 minLength 2"}},
		{"GET /things/1/?tag=aa&tag=bb&tag=cc&tag=dd", []string{"query tag maxItems 3"}},
		{"GET /things/1/?ids=1,128,x", []string{"query ids #/1 format int8", "query ids #/2 type integer"}},
		{"GET /things/1/?ids=1,2,1", []string{"query ids uniqueItems 2"}},
		{"GET /things/1/?ids=1&ids=2", []string{"query ids single"}},
		{"GET /things/1/?since=yesterday", []string{"query since format date-time"}},
		{"GET /things/1/?wait=soon", []string{"query wait format go-duration"}},
		{"GET /things/1/?ratio=NaN", []string{"query ratio type number"}},
		{"GET /things/1/?ratio=1", []string{"query ratio exclusiveMaximum 1"}},
		{"GET /things/1/?ratio=1e400", []string{"query ratio format float"}},
		{"GET /things/1/?ratio=0x10", []string{"query ratio type number"}},
		{"GET /things/1/?tag=aa&tag=b%ff", []string{"query tag #/1 utf8"}},
		{"GET /things/1/?from=%fe", []string{"query from utf8"}},
		{"GET /things/1/?from=here", []string{"query from type Addr"}},
		{"GET /things/x/?limit=0&dry=1&tag=a&sort=", []string{"path id type integer", "query limit minimum 1",
			"query dry type boolean", `query sort enum "name", "age"`, "query tag #/0 minLength 2"}},
	} {
		t.Run(c.line, func(t *testing.T) { expectViolations(t, ask(t, app, c.line), c.want...) })
	}
	t.Run("header and cookie", func(t *testing.T) {
		expectViolations(t, ask(t, app, "GET /things/1/", "Idempotency-Key: 123456789", "Cookie: theme=DARK"),
			"header Idempotency-Key maxLength 8", "cookie theme pattern ^[a-z]+$")
		expectViolations(t, ask(t, app, "GET /things/1/", "Idempotency-Key: \xff"), "header Idempotency-Key utf8")
	})
}

func TestRequiredParameters(t *testing.T) {
	app := quiet()
	type in struct {
		Q     string   `query:"q"`
		Token string   `header:"X-Token"`
		SID   string   `cookie:"sid"`
		List  []string `query:"list" minItems:"1"`
	}
	sink[in](app, "GET", "/")
	expectViolations(t, ask(t, app, "GET /"), "query q required", "query list required", "header X-Token required", "cookie sid required")
	if a := ask(t, app, "GET /?q=&list=x", "X-Token: t", "Cookie: sid=1"); a.status != 204 {
		t.Errorf("empty value: got %d %s", a.status, a.body)
	}
}

// Refused values are never repeated to the client.
func TestErrorsDoNotEchoValues(t *testing.T) {
	app := quiet()
	type in struct {
		Pin  string `header:"X-Pin" maxLength:"4"`
		Body struct {
			Password string `json:"password" minLength:"12" pattern:"^[!-~]+$"`
			Age      int    `json:"age"`
		}
	}
	sink[in](app, "POST", "/")
	a := ask(t, app, "POST /", "Content-Type: application/json", "X-Pin: s3cret1", "", `{"password":"s3cret2","age":"s3cret3"}`)
	if a.status != 400 || strings.Contains(a.body, "s3cret") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestSafeStrings(t *testing.T) {
	app := quiet()
	type in struct {
		A string `query:"a"`
		B string `query:"b"`
	}
	var kept []in
	typed.Get(app, "/", func(_ *dunlin.Request, v in) (typed.None, error) {
		kept = append(kept, v)
		return typed.None{}, nil
	})
	for _, q := range []string{"a=one&b=1", "a=tw%6F&b=2", "b=3&a=three"} {
		ask(t, app, "GET /?"+q)
	}
	if kept[0] != (in{"one", "1"}) || kept[1] != (in{"two", "2"}) || kept[2] != (in{"three", "3"}) {
		t.Errorf("got %+v", kept)
	}
}
