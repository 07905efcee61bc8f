package ext_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

func TestDefaultHeaders(t *testing.T) {
	block := dunlin.NewHeaderBlock("X-A", "1", "X-B", "2", "Vary", "Accept", "Vary", "Origin")
	for name, c := range map[string]struct {
		resp dunlin.Response
		want string
	}{
		"no headers":                    {dunlin.Empty(), "1 2 [Accept Origin]"},
		"header of a constructor":       {dunlin.Text("x"), "1 2 [Accept Origin]"},
		"block with one of the fields":  {dunlin.Text("x").With(dunlin.NewHeaderBlock("x-b", "own")), "1 own [Accept Origin]"},
		"own value":                     {dunlin.Text("x").Header("X-A", "own"), "own 2 [Accept Origin]"},
		"empty value":                   {dunlin.Text("x").Header("X-A", ""), " 2 [Accept Origin]"},
		"other field":                   {dunlin.Text("x").Header("X-C", "own"), "1 2 [Accept Origin]"},
		"response that owns memory":     {dunlin.JSON(1), "1 2 [Accept Origin]"},
		"own value of a repeated field": {dunlin.JSON(1).Header("Vary", "Cookie"), "1 2 [Cookie]"},
		"error response":                {dunlin.Error(errors.New("x")), "1 2 [Accept Origin]"},
		"invalid header name":           {dunlin.Text("x").Header("bad name", ""), "1 2 [Accept Origin]"},
	} {
		got := ext.DefaultHeaders(ext.DefaultHeaders(c.resp, nil), block)
		if text := fmt.Sprint(got.Get("X-A"), " ", got.Get("X-B"), " ", got.Values("Vary")); text != c.want {
			t.Errorf("%s: got %s, want %s", name, text, c.want)
		}
		if got.StatusCode() != c.resp.StatusCode() || got.Get("Content-Type") != c.resp.Get("Content-Type") {
			t.Errorf("%s: status or Content-Type changed: got %v", name, got)
		}
	}
	failed := ext.DefaultHeaders(dunlin.Text("x").Header("bad name", ""), dunlin.NewHeaderBlock("Content-Type", "text/csv", "X-A", "1"))
	if failed.Get("Content-Type") != "application/problem+json" || failed.Get("X-A") != "1" {
		t.Errorf("invalid header name: got %v", failed)
	}
}

func TestPerApp(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	type key struct{}
	made := 0
	one := func() int { made++; return made }
	if a, b := ext.PerApp(app, key{}, one), ext.PerApp(app, key{}, one); a != 1 || b != 1 {
		t.Errorf("got %v from the first call and %v from the second, want 1", a, b)
	}
	if v := ext.PerApp(dunlin.New(dunlin.Config{}), key{}, one); v != 2 {
		t.Errorf("other app: got %v, want 2", v)
	}
}

// AddStats adds the statistics of other packages to those of the app.
func TestAddStats(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	if s := app.Stats(); s.Added != nil || strings.Contains(s.String(), "added") {
		t.Errorf("without AddStats: got Added %v", s.Added)
	}
	calls := 0
	ext.AddStats(app, "store", func() any { calls++; return map[string]int{"calls": calls} })
	for n := 1; n < 3; n++ {
		if got, want := app.Stats().String(), fmt.Sprintf(`"added":{"store":{"calls":%d}}`, n); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
	for what, f := range map[string]func(){
		"duplicate name": func() { ext.AddStats(app, "store", func() any { return nil }) },
		"nil function":   func() { ext.AddStats(app, "other", nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "AddStats") {
					t.Errorf("%s: panic value %v", what, v)
				}
			}()
			f()
		}()
	}
}

func TestDescribe(t *testing.T) {
	route := dunlin.New(dunlin.Config{}).Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Empty() })
	ext.Describe(route, "described")
	if about := route.Info().About; about != "described" {
		t.Errorf("got About %v", about)
	}
}

func TestSetID(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		ext.SetID(r, "mine")
		return dunlin.Text(r.ID())
	})
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Body.String() != "mine" {
		t.Errorf("got ID %s", w.Body)
	}
}
