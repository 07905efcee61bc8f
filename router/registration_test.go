package router_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/router"
)

type route = router.Route[string]

func TestBadPatterns(t *testing.T) {
	tests := []struct {
		pattern string
		offset  int
		reason  string
	}{
		{"", 0, "must begin with a slash"},
		{"users", 0, "must begin with a slash"},
		{"/a//b", 3, "double slash"},
		{"/a/./b", 3, `"."`},
		{"/a/../b", 3, `".."`},
		{"/a/..", 3, `".."`},
		{"/{", 1, "without a closing"},
		{"/a}", 2, "without an opening"},
		{"/{}", 2, "not a parameter name"},
		{"/{a b}", 2, "not a parameter name"},
		{"/{1a}", 2, "not a parameter name"},
		{"/{a}{b}", 4, "text between"},
		{"/{a}/{a}", 6, "twice"},
		{"/{a...}/b", 1, "last segment"},
		{"/x{a...}", 2, "whole segment"},
		{"/{a...}x", 1, "whole segment"},
		{"/{a:}", 4, "empty constraint"},
		{"/{a:itn}", 4, `unknown constraint "itn"`},
		{"/{a:[z-a]}", 4, "invalid character class range"},
		{"/{a:(}", 4, "missing closing )"},
		{"/caf%C3%A9", 4, "the character itself"},
		{"/a\x00", 2, "control character"},
		{"/" + strings.Repeat("a", 5000), 4096, "at most"},
	}
	for _, test := range tests {
		var r router.Router[string]
		err := r.Add(route{Methods: "GET", Pattern: test.pattern, Place: "main.go:7"})
		pe := new(router.PatternError)
		if !errors.As(err, &pe) {
			t.Errorf("%.40q: got error %v, want a PatternError", test.pattern, err)
			continue
		}
		if pe.Offset != test.offset || !strings.Contains(pe.Reason, test.reason) {
			t.Errorf("%.40q: got offset %d and reason %q, want %d and %q", test.pattern, pe.Offset, pe.Reason, test.offset, test.reason)
		}
		if !strings.Contains(err.Error(), "main.go:7") {
			t.Errorf("%.40q: got error %q without the position", test.pattern, err)
		}
		if len(r.Routes()) != 0 {
			t.Errorf("%.40q: refused route is listed", test.pattern)
		}
	}
}

func TestBadRegistrations(t *testing.T) {
	tests := []struct {
		route route
		want  string
	}{
		{route{Methods: "", Pattern: "/"}, "empty method"},
		{route{Methods: "GET,,POST", Pattern: "/"}, "empty method"},
		{route{Methods: "GET,post", Pattern: "/"}, "method post must be written POST"},
		{route{Methods: "GET POST", Pattern: "/"}, "not a method"},
		{route{Methods: "GET", Pattern: "/", Version: "2"}, "version"},
		{route{Methods: "GET", Pattern: "/{a...}", Prefix: true}, "prefix route"},
		{route{Methods: "GET", Pattern: "/", Host: "example.com:80"}, "port"},
		{route{Methods: "GET", Pattern: "/", Host: "a..b"}, "empty label"},
		{route{Methods: "GET", Pattern: "/", Host: "{a...}.b"}, "cannot have a catch-all"},
		{route{Methods: "GET", Pattern: "/", Host: "a/b"}, "cannot occur"},
		{route{Methods: "GET", Pattern: "/{a}", Host: "{a}.b"}, "host and path"},
	}
	for _, test := range tests {
		var r router.Router[string]
		if err := r.Add(test.route); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got error %v, want %q", test.route, err, test.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	tests := []struct {
		name    string
		a, b    route
		example string // "" if there is no conflict
	}{
		{"same", route{Methods: "GET", Pattern: "/a"}, route{Methods: "POST,GET", Pattern: "/a"}, "/a"},
		{"other method", route{Methods: "GET", Pattern: "/a"}, route{Methods: "POST", Pattern: "/a"}, ""},
		{"any method and GET", route{Methods: "*", Pattern: "/a"}, route{Methods: "GET", Pattern: "/a"}, ""},
		{"any method twice", route{Methods: "*", Pattern: "/a"}, route{Methods: "*", Pattern: "/a"}, "/a"},
		{"names do not matter", route{Methods: "GET", Pattern: "/{a}/x"}, route{Methods: "GET", Pattern: "/{b}/x"}, "/x/x"},
		{"int and uint", route{Methods: "GET", Pattern: "/{a:int}"}, route{Methods: "GET", Pattern: "/{a:uint}"}, "/0"},
		{"int and alpha", route{Methods: "GET", Pattern: "/{a:int}"}, route{Methods: "GET", Pattern: "/{a:alpha}"}, ""},
		{"different later segments", route{Methods: "GET", Pattern: "/{a:int}/x"}, route{Methods: "GET", Pattern: "/{a:uint}/y"}, ""},
		{"later segment with higher rank", route{Methods: "GET", Pattern: "/{a:int}/x"}, route{Methods: "GET", Pattern: "/{a:uint}/{b}"}, "/0/x"},
		{"expressions", route{Methods: "GET", Pattern: "/{a:a+b?}"}, route{Methods: "GET", Pattern: "/{a:(aa)+}"}, "/aa"},
		{"disjoint expressions", route{Methods: "GET", Pattern: "/{a:a+b}"}, route{Methods: "GET", Pattern: "/{a:a+c}"}, ""},
		{"ipv6 and hex", route{Methods: "GET", Pattern: "/{a:ipv6}"}, route{Methods: "GET", Pattern: "/{a:hex}"}, ""},
		{"date and text", route{Methods: "GET", Pattern: "/{a:date}"}, route{Methods: "GET", Pattern: "/{y:int}-{m}-{d}"}, "/0000-01-01"},
		{"text", route{Methods: "GET", Pattern: "/v{a}"}, route{Methods: "GET", Pattern: "/{a}.{b}"}, "/v.a"},
		{"disjoint text", route{Methods: "GET", Pattern: "/v{a}"}, route{Methods: "GET", Pattern: "/w{a}"}, ""},
		{"escaped example", route{Methods: "GET", Pattern: "/{a:[/%]}"}, route{Methods: "GET", Pattern: "/{a:[/x]}"}, "/%2F"},
		{"HEAD of GET", route{Methods: "GET", Pattern: "/{a:int}"}, route{Methods: "HEAD", Pattern: "/{a:uint}"}, "/0"},
		{"own HEAD", route{Methods: "GET", Pattern: "/a"}, route{Methods: "HEAD", Pattern: "/a"}, ""},
		{"catch-alls", route{Methods: "GET", Pattern: "/a/{b...}"}, route{Methods: "GET", Pattern: "/a/{c...}"}, "/a/"},
		{"prefix and catch-all", route{Methods: "GET", Pattern: "/a", Prefix: true}, route{Methods: "GET", Pattern: "/a/{c...}"}, "/a/"},
		{"prefix and exact", route{Methods: "GET", Pattern: "/a", Prefix: true}, route{Methods: "GET", Pattern: "/a"}, ""},
		{"prefixes", route{Methods: "GET", Pattern: "/{a:int}", Prefix: true}, route{Methods: "GET", Pattern: "/{a:uint}/x"}, "/0/x"},
		{"prefix and its path", route{Methods: "GET", Pattern: "/{a:int}", Prefix: true}, route{Methods: "GET", Pattern: "/{a:uint}"}, "/0"},
		{"roots", route{Methods: "*", Pattern: "/", Prefix: true}, route{Methods: "*", Pattern: "/", Prefix: true}, "/"},
		{"versions", route{Methods: "GET", Pattern: "/a", Version: "v1"}, route{Methods: "GET", Pattern: "/a", Version: "v2"}, ""},
		{"same version", route{Methods: "GET", Pattern: "/a", Version: "v1"}, route{Methods: "GET", Pattern: "/a", Version: "v1"}, "/a"},
		{"hosts", route{Methods: "GET", Pattern: "/a", Host: "x.y"}, route{Methods: "GET", Pattern: "/a", Host: "X.Y"}, "x.y/a"},
		{"other host", route{Methods: "GET", Pattern: "/a", Host: "x.y"}, route{Methods: "GET", Pattern: "/a", Host: "z.y"}, ""},
		{"host patterns", route{Methods: "GET", Pattern: "/a", Host: "{t}.y"}, route{Methods: "GET", Pattern: "/a", Host: "{u}.y"}, "x.y/a"},
	}
	for _, test := range tests {
		test.a.Place, test.b.Place = "a.go:1", "b.go:2"
		for range 2 {
			var r router.Router[string]
			if err := r.Add(test.a); err != nil {
				t.Fatal(err)
			}
			err := r.Add(test.b)
			conflict := new(router.ConflictError)
			switch {
			case test.example == "" && err != nil:
				t.Errorf("%s: got error %v", test.name, err)
			case test.example == "":
			case !errors.As(err, &conflict):
				t.Errorf("%s: got error %v, want a conflict", test.name, err)
			case conflict.Example != test.example:
				t.Errorf("%s: got example %q, want %q", test.name, conflict.Example, test.example)
			case !strings.Contains(err.Error(), "a.go:1") || !strings.Contains(err.Error(), "b.go:2"):
				t.Errorf("%s: got error %q, want both positions in it", test.name, err)
			}
			test.a, test.b = test.b, test.a
		}
	}
}

// The source position is computed only when a message contains it.
func TestPositionIsComputedOnDemand(t *testing.T) {
	a, b := &positionCounter{at: "a.go:1"}, &positionCounter{at: "b.go:2"}
	var r router.Router[string]
	if err := r.Add(route{Methods: "GET", Pattern: "/a", Name: "a", Where: a}); err != nil {
		t.Fatal(err)
	}
	var m router.Match[string]
	if r.Lookup("GET", "", "/a", &m); m.Route() == nil || a.times != 0 {
		t.Errorf("got %d calls before the position was needed", a.times)
	}
	for _, other := range []route{{Methods: "GET", Pattern: "/a", Where: b}, {Methods: "GET", Pattern: "/b", Name: "a", Where: b}} {
		if err := r.Add(other); err == nil || !strings.Contains(err.Error(), "a.go:1") || !strings.Contains(err.Error(), "b.go:2") {
			t.Errorf("got error %v, want both positions in it", err)
		}
	}
	if got := r.Routes()[0].Place; got != "a.go:1" {
		t.Errorf("got position %q in the listing", got)
	}
	if got := r.Explain("GET", "", "/a", ""); strings.Count(got, "a.go:1") != 2 {
		t.Errorf("got an explanation without the position:\n%s", got)
	}
}

// positionCounter counts calls.
type positionCounter struct {
	at    string
	times int
}

func (a *positionCounter) String() string { a.times++; return a.at }

func TestAmbiguousHosts(t *testing.T) {
	r := build(t, route{Methods: "GET", Pattern: "/a", Host: "{t:int}.y"})
	err := r.Add(route{Methods: "GET", Pattern: "/b", Host: "{t:hex}.y"})
	if err == nil || !strings.Contains(err.Error(), "0.y") {
		t.Errorf("got error %v, want an example in it", err)
	}
}

// TestRefusedRouteHasNoEffect adds a route that conflicts at its second node in the tree.
func TestRefusedRouteHasNoEffect(t *testing.T) {
	r := build(t, route{Methods: "GET", Pattern: "/a/{rest...}"})
	if err := r.Add(route{Methods: "GET,PURGE", Pattern: "/a", Prefix: true, Name: "n"}); err == nil {
		t.Fatal("got no conflict")
	}
	var m router.Match[string]
	if got := r.Lookup("GET", "", "/a", &m); got != router.OutcomeNotFound {
		t.Errorf("/a: got %v", got)
	}
	if got := r.Lookup("PURGE", "", "/a/b", &m); got != router.OutcomeMethodNotAllowed || m.Allow() != "GET, HEAD, OPTIONS" {
		t.Errorf("/a/b: got %v, %s", got, m.Allow())
	}
	if _, err := r.URL("n"); err == nil {
		t.Error("the name of the refused route is in use")
	}
}

func TestConstraintDefinitions(t *testing.T) {
	var r router.Router[string]
	if err := r.Constraint("word", `^\w+$`); err != nil {
		t.Fatal(err)
	}
	if err := r.ConstraintFunc("even", func(s string) bool { return len(s)%2 == 0 }); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"word":  r.Constraint("word", "x"),
		"int":   r.Constraint("int", "x"),
		"a b":   r.Constraint("a b", "x"),
		"bad":   r.Constraint("bad", "("),
		"nil":   r.ConstraintFunc("nil", nil),
		"even ": r.ConstraintFunc("even", func(string) bool { return true }),
	} {
		if err == nil {
			t.Errorf("%q: got no error", name)
		}
	}
	for _, reg := range []route{
		{Methods: "GET", Pattern: "/w/{a:word}", Value: "word"},
		{Methods: "GET", Pattern: "/e/{a:even}", Value: "even"},
		{Methods: "GET", Pattern: "/b/{a:(a|b)*a(a|b){14}}", Value: "big"},
	} {
		if err := r.Add(reg); err != nil {
			t.Fatal(err)
		}
	}
	var m router.Match[string]
	for path, want := range map[string]router.Outcome{
		"/w/a_1": router.OutcomeFound, "/w/a-1": router.OutcomeNotFound,
		"/e/ab": router.OutcomeFound, "/e/abc": router.OutcomeNotFound, "/e/a%2F": router.OutcomeFound, "/e/%25": router.OutcomeNotFound,
		"/b/bbabbbbbbbbbbbbb": router.OutcomeNotFound, "/b/aaaaaaaaaaaaaaaa": router.OutcomeFound,
	} {
		if got := r.Lookup("GET", "", path, &m); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	list := r.Routes()
	for i, want := range []string{"a: word", "a: even (func)", "a: (a|b)*a(a|b){14} (regexp fallback)"} {
		if got := list[i].Constraints; len(got) != 1 || got[0] != want {
			t.Errorf("got constraints %q, want %q", got, want)
		}
	}
}

// Takes reports the methods of routes, except routes for any method.
func TestRouterTakesMethod(t *testing.T) {
	var r router.Router[int]
	for _, methods := range []string{"GET,PURGE", "*"} {
		if err := r.Add(router.Route[int]{Methods: methods, Pattern: "/" + strings.Trim(methods, "*")}); err != nil {
			t.Fatal(err)
		}
	}
	for method, want := range map[string]bool{"GET": true, "PURGE": true, "CONNECT": false, "POST": false, "OTHER": false} {
		if got := r.Takes(method); got != want {
			t.Errorf("Takes(%q): got %v", method, got)
		}
	}
}
