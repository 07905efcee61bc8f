package typed_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/typed"
)

// closed refuses unknown members, open accepts them, and plain uses the app's setting.
type (
	closed struct {
		_    struct{} `additionalProperties:"false"`
		Name string   `json:"name" minLength:"2"`
	}
	open struct {
		_    struct{}       `additionalProperties:"true"`
		Name string         `json:"name" minLength:"2"`
		Keys map[int]string `json:"keys,omitempty"` // not supported by the one-pass decoder
	}
	plain struct {
		Name string `json:"name" minLength:"2"`
		Next *plain `json:"next,omitempty"`
	}
	mixed struct {
		Plain  *plain  `json:"plain,omitempty"`
		Open   *open   `json:"open,omitempty"`
		Closed *closed `json:"closed,omitempty"`
	}
)

// echo registers an action that answers its body.
func echo[T any](app *dunlin.App, path string) {
	typed.Post(app, path, func(_ *dunlin.Request, in struct{ Body T }) (T, error) { return in.Body, nil })
}

func TestUnknownMembers(t *testing.T) {
	for _, c := range []struct{ path, body, rejecting, ignoring string }{ // "" for 200
		{"/plain", `{"name":"ab","x":1}`, "body #/x additionalProperties", ""},
		{"/plain", `{"x":[{"y":{}}],"next":{"z":"é","name":"cd"},"name":"ab"}`,
			"body #/x additionalProperties, body #/next/z additionalProperties", ""},
		{"/plain", `{"name":"ab","NAME":"c"}`, "body #/NAME additionalProperties", ""},
		{"/plain", `{"NAME":"ab"}`, "body #/NAME additionalProperties, body #/name required", "body #/name required"},
		{"/plain", `{"x":1,"name":"a"}`, "body #/x additionalProperties, body #/name minLength 2", "body #/name minLength 2"},
		{"/plain", `{"name":"ab","name":"ab","x":1}`, "body #/name duplicate, body #/x additionalProperties", "body #/name duplicate"},
		{"/plain", `{"name":"ab","x":"` + "\xff" + `"}`, "body #/x additionalProperties, body #/x utf8", "body #/x utf8"},
		{"/plain", `{"name":"ab","x":{"y":["\ud800"]}}`, "body #/x additionalProperties, body #/x/y/0 utf8", "body #/x/y/0 utf8"},
		{"/open", `{"name":"ab","x":1,"NAME":"c","keys":{"1":"a"}}`, "", ""},
		{"/open", `{"name":"a","x":1}`, "body #/name minLength 2", "body #/name minLength 2"},
		{"/closed", `{"name":"ab","x":1}`, "body #/x additionalProperties", "body #/x additionalProperties"},
		{"/mixed", `{"open":{"name":"ab","x":1,"Name":"c"}}`, "", ""},
		{"/mixed", `{"plain":{"name":"ab","x":1}}`, "body #/plain/x additionalProperties", ""},
		{"/mixed", `{"closed":{"name":"ab","x":1},"plain":{"name":"ab","Name":"c"}}`,
			"body #/closed/x additionalProperties, body #/plain/Name additionalProperties", "body #/closed/x additionalProperties"},
	} {
		for _, unknown := range []typed.UnknownMembers{typed.UnknownMembersReject, typed.UnknownMembersIgnore} {
			app := quiet()
			typed.Configure(app, typed.Config{UnknownMembers: unknown})
			echo[plain](app, "/plain")
			echo[open](app, "/open")
			echo[closed](app, "/closed")
			echo[mixed](app, "/mixed")
			want := map[typed.UnknownMembers]string{typed.UnknownMembersReject: c.rejecting, typed.UnknownMembersIgnore: c.ignoring}[unknown]
			a := post(t, app, c.path, c.body)
			switch {
			case want != "":
				expectViolations(t, a, strings.Split(want, ", ")...)
			case a.status != http.StatusOK || strings.Contains(a.body, `"c"`) || strings.Contains(a.body, `"x"`):
				t.Errorf("%s %s with UnknownMembers %d: got %d %s", c.path, c.body, unknown, a.status, a.body)
			}
		}
	}
}

// Skipped members count towards the limits, like all JSON.
func TestUnknownMembersAreBounded(t *testing.T) {
	app := quiet()
	typed.Configure(app, typed.Config{UnknownMembers: typed.UnknownMembersIgnore, MaxElements: 5})
	echo[plain](app, "/plain")
	echo[open](app, "/open")
	for _, path := range []string{"/plain", "/open"} {
		expectViolations(t, post(t, app, path, `{"name":"ab","x":[1,2,3,4]}`), "body #/x/3 elements 5")
		deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
		if a := post(t, app, path, `{"name":"ab","x":`+deep+`}`); a.status != http.StatusBadRequest {
			t.Errorf("%s: deeply nested member: got %d %s", path, a.status, a.body)
		}
		if a := post(t, app, path, `{"name":"ab","x":`+strings.Repeat("1", 1001)+`}`); a.status != http.StatusBadRequest || !strings.Contains(a.body, "numberLength") {
			t.Errorf("%s: long number: got %d %s", path, a.status, a.body)
		}
		if a := post(t, app, path, `{"name":"ab","x":tru}`); a.status != http.StatusBadRequest || !strings.Contains(a.body, "syntax") {
			t.Errorf("%s: malformed JSON: got %d %s", path, a.status, a.body)
		}
	}
}

// The decoder skips ignored unknown members without allocating.
func TestUnknownMembersDoNotAllocate(t *testing.T) {
	app := quiet()
	typed.Configure(app, typed.Config{UnknownMembers: typed.UnknownMembersIgnore})
	typed.Post(app, "/", func(_ *dunlin.Request, in struct{ Body plain }) (typed.None, error) { return typed.None{}, nil })
	allocations := func(body string) float64 {
		return testing.AllocsPerRun(50, func() {
			if a := post(t, app, "/", body); a.status != http.StatusNoContent {
				t.Fatalf("got %d %s", a.status, a.body)
			}
		})
	}
	without := allocations(`{"name":"ab"}`)
	if with := allocations(`{"name":"ab","x":[{"a":"b","c":[1,2,3]},"text",{"d":{}}]}`); with > without+2 {
		t.Errorf("got %.0f allocations with an unknown member and %.0f without", with, without)
	}
}

func TestUnknownMembersOnEngines(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		typed.Configure(app, typed.Config{UnknownMembers: typed.UnknownMembersIgnore})
		echo[mixed](app, "/")
		addr := dunlintest.Serve(t, app)
		for body, status := range map[string]int{
			`{"plain":{"name":"ab","x":[1]},"y":{}}`: http.StatusOK, `{"closed":{"name":"ab","x":1}}`: http.StatusBadRequest,
		} {
			resp, err := http.Post("http://"+addr+"/", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != status {
				t.Errorf("%s: got %d", body, resp.StatusCode)
			}
		}
	})
}

func TestInvalidUnknownMembersTags(t *testing.T) {
	for want, register := range map[string]func(*dunlin.App){
		"must be true or false": func(app *dunlin.App) {
			echo[struct {
				_ struct{} `additionalProperties:"yes"`
			}](app, "/")
		},
		"blank field": func(app *dunlin.App) {
			echo[struct {
				Inner plain `additionalProperties:"true"`
			}](app, "/")
		},
		"is allowed only in the tag": func(app *dunlin.App) {
			echo[struct {
				List []plain `items.additionalProperties:"true"`
			}](app, "/")
		},
		"but no source": func(app *dunlin.App) {
			sink[struct {
				_ struct{} `additionalProperties:"true"`
			}](app, "GET", "/")
		},
		"UnknownMembers is 2": func(app *dunlin.App) { typed.Configure(app, typed.Config{UnknownMembers: 2}) },
	} {
		if got := panics(func() { register(quiet()) }); !strings.Contains(got, want) {
			t.Errorf("got panic %q, want it to contain %q", got, want)
		}
	}
}
