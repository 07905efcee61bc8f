package router_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/router"
)

func ExampleRouter() {
	var r router.Router[string]
	err := r.Add(router.Route[string]{Methods: "GET", Pattern: "/users/{id:int}", Name: "user", Value: "show user"})
	if err != nil {
		panic(err)
	}
	path := "/users/42"
	var m router.Match[string]
	if r.Lookup("GET", "example.com", path, &m) == router.OutcomeFound {
		fmt.Println(m.Route().Value, m.Name(0), m.Span(0).Of(path))
	}
	url, _ := r.URL("user", 43)
	fmt.Println(url)
	// Output:
	// show user id 42
	// /users/43
}

// A request path is made canonical before the lookup, and values are unescaped afterwards, so an escaped slash does not split a
// segment.
func ExampleCanonical() {
	var r router.Router[string]
	if err := r.Add(router.Route[string]{Methods: "GET", Pattern: "/files/{name}", Value: "show file"}); err != nil {
		panic(err)
	}
	path, err := router.Canonical(nil, "/files/a%2Fb%20c.txt")
	if err != nil {
		panic(err) // a percent sign without two hexadecimal digits
	}
	var m router.Match[string]
	if r.Lookup("GET", "", string(path), &m) == router.OutcomeFound {
		fmt.Println(string(path))
		fmt.Println(router.Unescape(m.Span(0).Of(string(path))))
	}
	// Output:
	// /files/a%2Fb c.txt
	// a/b c.txt
}

func ExampleRouter_Explain() {
	var r router.Router[string]
	for _, pattern := range []string{"/users/{id:int}", "/users/{name}/posts", "/users/new"} {
		if err := r.Add(router.Route[string]{Methods: "GET", Pattern: pattern, Place: "main.go:7"}); err != nil {
			panic(err)
		}
	}
	fmt.Print(r.Explain("GET", "example.com", "/users/42/posts", ""))
	// Output:
	// GET example.com/users/42/posts
	//   "users" is a static segment
	//     "42" is accepted by {id:int}
	//       "posts": no pattern continues with this segment
	//     "42" is the value of a parameter
	//       "posts" is a static segment
	//         the path ends here: GET /users/{name}/posts at main.go:7
	// found: GET /users/{name}/posts at main.go:7
	//   name = "42"
}

// TestExplainAgrees checks that the explanation has the same result as the lookup.
func TestExplainAgrees(t *testing.T) {
	r := build(t,
		route{Methods: "GET", Pattern: "/a/{id:int}"}, route{Methods: "POST", Pattern: "/a/{rest...}"},
		route{Methods: "GET", Pattern: "/v", Version: "v1"}, route{Methods: "GET", Pattern: "/h/{x}", Host: "{t}.b"},
		route{Methods: "GET", Pattern: "/", Host: "c.b"}, route{Methods: "GET", Pattern: "/p", Prefix: true},
	)
	for _, test := range []struct{ method, host, path, accept, want string }{
		{"GET", "", "/a/7", "", "found: GET /a/{id:int}\n  id = \"7\"\n"},
		{"HEAD", "", "/a/7", "", "  a route for GET answers HEAD\n"},
		{"GET", "", "/a/x", "", "method not allowed; allowed are POST, OPTIONS\n"},
		{"PUT", "", "/a/7", "", "method not allowed; allowed are GET, HEAD, POST, OPTIONS\n"},
		{"GET", "", "/v", "application/vnd.x.v3", "not acceptable; the versions are v1\n"},
		{"GET", "a.b:80", "/h/a%2Fb", "", "  t = \"a\"\n  x = \"a/b\"\n"},
		{"GET", "c.b", "/p/x", "", "found: GET /p\n"},
		{"POST", "", "/a/x/../y", "", "the clean path is /a/y\n"},
		{"GET", "", "/v/", "", "the path would match if its trailing slash were added or removed\n"},
		{"GET", "", "nowhere", "", "not found\n"},
	} {
		if got := r.Explain(test.method, test.host, test.path, test.accept); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s %s%s: got\n%s\nwant it to end with %q", test.method, test.host, test.path, got, test.want)
		}
	}
}

func TestURL(t *testing.T) {
	r := build(t,
		route{Methods: "GET", Pattern: "/", Name: "root"},
		route{Methods: "GET", Pattern: "/café/{id:int}/", Name: "int"},
		route{Methods: "GET", Pattern: "/n/{name}", Name: "name"},
		route{Methods: "GET", Pattern: "/f/{rest...}", Name: "rest"},
		route{Methods: "GET", Pattern: "/d/{f}.{e}", Name: "file"},
		route{Methods: "GET", Pattern: "/h/{x}", Host: "{t}.example.com", Name: "host"},
		route{Methods: "GET", Pattern: "/l", Prefix: true, Name: "prefix"},
		route{Methods: "GET", Pattern: "/100%/a%2Fb", Name: "escapes"},
	)
	for _, test := range []struct {
		name string
		args []any
		want string // "" for an error
	}{
		{"root", nil, "/"},
		{"int", []any{42}, "/caf%C3%A9/42/"},
		{"int", []any{"x"}, ""},
		{"int", nil, ""},
		{"int", []any{1, 2}, ""},
		{"name", []any{"a/b c%?"}, "/n/a%2Fb%20c%25%3F"},
		{"name", []any{""}, ""},
		{"name", []any{".."}, ""},
		{"rest", []any{"a/b c"}, "/f/a/b%20c"},
		{"rest", []any{""}, "/f/"},
		{"rest", []any{"a//b"}, ""},
		{"rest", []any{"../b"}, ""},
		{"file", []any{"archive.tar", "gz"}, "/d/archive.tar.gz"},
		{"file", []any{"archive", "tar.gz"}, ""},
		{"host", []any{"acme", "y"}, "//acme.example.com/h/y"},
		{"host", []any{"a.b", "y"}, ""},
		{"host", []any{"a/b", "y"}, ""},
		{"prefix", nil, "/l"},
		{"escapes", nil, "/100%25/a%2Fb"},
		{"nobody", nil, ""},
		{"", nil, ""},
	} {
		got, err := r.URL(test.name, test.args...)
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s %v: got %q, error %v; want %q", test.name, test.args, got, err, test.want)
		}
	}
	if err := r.Add(route{Methods: "GET", Pattern: "/again", Name: "root"}); err == nil || !strings.Contains(err.Error(), `"root"`) {
		t.Errorf("got error %v, want one about the name", err)
	}
}

func TestRoutes(t *testing.T) {
	r := build(t,
		route{Methods: "GET,HEAD", Pattern: "/a/{id:int}", Place: "main.go:1", Name: "a"},
		route{Methods: "*", Pattern: "/l", Prefix: true, Host: "{t:alpha}.b", Version: "v1"},
	)
	want := []router.Info{
		{Methods: "GET,HEAD", Pattern: "/a/{id:int}", Place: "main.go:1", Name: "a", Constraints: []string{"id: int"},
			Params: []router.Param{{Name: "id", Constraint: "int"}}},
		{Methods: "*", Pattern: "/l", Prefix: true, Host: "{t:alpha}.b", Version: "v1", Constraints: []string{"t: alpha"},
			Params: []router.Param{{Name: "t", Constraint: "alpha", InHost: true}}},
	}
	if got := r.Routes(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if got := r.Info(1); fmt.Sprint(got) != fmt.Sprint(want[1]) {
		t.Errorf("got %v\nwant %v", got, want[1])
	}
}

// TestBacktrackingIsBounded counts the steps of lookups that fail at the end of the path, with many patterns that match up to
// that point. An explanation has a few lines for each visited node.
func TestBacktrackingIsBounded(t *testing.T) {
	const depth = 20
	repeat := func(segment string) string {
		pattern := ""
		for i := range depth {
			pattern += fmt.Sprintf(segment, i)
		}
		return pattern
	}
	chains := build(t,
		route{Methods: "GET", Pattern: repeat("/{p%d:int}") + "/x"},
		route{Methods: "GET", Pattern: repeat("/{p%d}") + "/y"},
		route{Methods: "GET", Pattern: repeat("/{p%d}-{q%[1]d}") + "/{r...}"},
	)
	var mixed router.Router[string]
	for bits := range 64 {
		pattern := ""
		for i := range 6 {
			pattern += fmt.Sprintf("/{p%d%s}", i, [...]string{"", ":int"}[bits>>i&1])
		}
		if err := mixed.Add(route{Methods: "GET", Pattern: pattern + "/x"}); err != nil {
			t.Fatal(err)
		}
	}
	const nodes = 3 * 64 // a binary tree of depth 6, and its leaves
	for _, test := range []struct {
		r     *router.Router[string]
		path  string
		nodes int
	}{
		{chains, strings.Repeat("/1", depth) + "/z", 3 * depth},
		{chains, strings.Repeat("/1-1", depth) + "/.", 3 * depth},
		{&mixed, strings.Repeat("/1", 6) + "/z", nodes},
	} {
		story := test.r.Explain("GET", "", test.path, "")
		if lines := strings.Count(story, "\n"); lines > 4*test.nodes || !strings.Contains(story, "\nnot found\n") {
			t.Errorf("%s: got %d lines, want at most 4 for each of %d nodes:\n%.2000s", test.path, lines, test.nodes, story)
		}
	}
}
