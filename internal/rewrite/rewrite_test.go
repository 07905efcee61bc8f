package rewrite_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/rewrite"
)

func TestPath(t *testing.T) {
	var rules rewrite.Rules
	for from, to := range map[string]string{
		"/old/{path...}": "/new/{path...}", "/u/{name}/{id:int}": "/p/{id}-{name}/{id}", "/a": "/b", "/files/{name}.{ext}": "/{ext}/{name}", "/café": "/%2F:x*",
	} {
		if err := rules.Add(from, to, "here"); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"/old": "", "/old/": "/new/", "/old/a/b%2Fc": "/new/a/b%2Fc", "/old/a/": "/new/a/", "/u/ada/7": "/p/7-ada/7", "/u/ada/x": "", "/u/ada": "",
		"/a": "/b", "/b": "", "/files/a.b.c": "/c/a.b", "/café": "/%2F:x*", "*": "", "": "", "/old//x": "", "/old/../x": "",
	} {
		if got, ok := rules.Path(path, new(rewrite.Match)); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", path, got, ok, want)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	var rules rewrite.Rules
	if err := rules.Add("/x/{a}", "/y/{a}", "first.go:1"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"x", "/y", "x"}, {"/p/{a:nonsense}", "/y", "nonsense"}, {"/p/{", "/y", "{"}, {"/x/{b}", "/z", "first.go:1"},
		{"/p", "", "is not a path"}, {"/p", "y", "is not a path"}, {"/p", "//y", "is not a path"}, {"/p", "/y?q", "is not a path"}, {"/p", "/y#f", "is not a path"},
		{"/p", "/../y", "is not a path"}, {"/p", "/%zz", "is not a path"}, {"/p", "/%41", "is not a path"}, {"/p", "https://h/", "is not a path"}, {"/p/{a}", "/{a}}", "is not a path"},
		{"/p/{a}", "/{a", "not closed"}, {"/p/{a}", "/{b}", "has {b}"}, {"/p/{a...}", "/{a}", "has {a}"}, {"/p/{a}", "/{a...}", "has {a...}"}, {"/p", "/{}", "has {}"},
	} {
		if err := rules.Add(c.from, c.to, "second.go:2"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q to %q: got %v, without %q", c.from, c.to, err, c.want)
		}
	}
	if got, ok := rules.Path("/p", new(rewrite.Match)); ok {
		t.Errorf("refused rule: got path %q", got)
	}
}

func TestSetPath(t *testing.T) {
	for path, want := range map[string]string{"/a b/é": "/a%20b/%C3%A9?q", "/a%2Fb%25": "/a%2Fb%25?q", "/": "/?q"} {
		req := httptest.NewRequest("GET", "/sent?q", nil)
		before := req.URL
		if rewrite.SetPath(req, path); req.URL.String() != want || before.Path != "/sent" {
			t.Errorf("%q: got %s, and %s for the other request", path, req.URL, before)
		}
	}
}

func TestPathAllocates(t *testing.T) {
	var rules rewrite.Rules
	if err := rules.Add("/old/{path...}", "/new/{path...}", ""); err != nil {
		t.Fatal(err)
	}
	m := new(rewrite.Match)
	for path, most := range map[string]float64{"/users/7/posts": 0, "/old/x/y": 2} {
		if n := testing.AllocsPerRun(1000, func() { rules.Path(path, m) }); n > most {
			t.Errorf("%s: got %v allocations", path, n)
		}
	}
}
