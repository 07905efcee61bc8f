package router_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/router"
)

// values lists the parameters of a match as "name=value".
func values(m *router.Match[string], host, path string) string {
	var list []string
	for i := range m.Len() {
		from := path
		if m.InHost(i) {
			from = host
		}
		list = append(list, m.Name(i)+"="+router.Unescape(m.Span(i).Of(from)))
	}
	return strings.Join(list, " ")
}

func TestPrecedence(t *testing.T) {
	var routes []route
	for _, p := range []string{
		"/{rest...}", "/{a}", "/{a:int}", "/new", "/{a}/edit", "/{a:int}/{b}", "/new/{b...}", "/café/{x}", "/{f}.{e}/x",
		"/v{major:int}.{minor:int}/y", "/s/{a%s}-{b}", "/100%", "/a%2Fb", "/tail/",
	} {
		p = strings.ReplaceAll(p, "%s", "")
		routes = append(routes, route{Methods: "GET", Pattern: p, Value: p})
	}
	r := build(t, routes...)
	var m router.Match[string]
	for _, test := range []struct{ path, pattern, values string }{
		{"/", "/{rest...}", "rest="},
		{"/new", "/new", ""},
		{"/42", "/{a:int}", "a=42"},
		{"/x", "/{a}", "a=x"},
		{"/x/", "/{rest...}", "rest=x/"},
		{"/42/edit", "/{a:int}/{b}", "a=42 b=edit"},
		{"/x/edit", "/{a}/edit", "a=x"},
		{"/new/edit", "/new/{b...}", "b=edit"},
		{"/new/", "/new/{b...}", "b="},
		{"/42/b/c", "/{rest...}", "rest=42/b/c"},
		{"/café/é", "/café/{x}", "x=é"},
		{"/archive.tar.gz/x", "/{f}.{e}/x", "f=archive.tar e=gz"},
		{"/.a/x", "/{rest...}", "rest=.a/x"},
		{"/v1.2/y", "/v{major:int}.{minor:int}/y", "major=1 minor=2"},
		{"/v1.2.3/y", "/{rest...}", "rest=v1.2.3/y"},
		{"/s/a-b-c", "/s/{a}-{b}", "a=a-b b=c"},
		{"/s/a%2F-b%25", "/s/{a}-{b}", "a=a/ b=b%"},
		{"/100%25", "/100%", ""},
		{"/a%2Fb", "/a%2Fb", ""},
		{"/a%2Fc", "/{a}", "a=a/c"},
		{"/tail/", "/tail/", ""},
		{"/tail", "/{a}", "a=tail"},
	} {
		if got := r.Lookup("GET", "", test.path, &m); got != router.OutcomeFound {
			t.Errorf("%s: got %v", test.path, got)
		} else if got := m.Route().Value; got != test.pattern || values(&m, "", test.path) != test.values {
			t.Errorf("%s: got %s %q, want %s %q", test.path, got, values(&m, "", test.path), test.pattern, test.values)
		}
	}
	for _, path := range []string{"", "*", "a", "//", "/.", "/..", "/a/../b", "/new/.", "/a//b", "/new/x/./y"} {
		if got := r.Lookup("GET", "", path, &m); got != router.OutcomeNotFound || m.Route() != nil || m.Len() != 0 {
			t.Errorf("%q: got %v, route %v", path, got, m.Route())
		}
	}
}

func TestSearchSkipsEscapes(t *testing.T) {
	r := build(t, route{Methods: "GET", Pattern: "/{a}2F{b}"}, route{Methods: "GET", Pattern: "/end/{a}F"})
	var m router.Match[string]
	if got := r.Lookup("GET", "", "/x%2Fy", &m); got != router.OutcomeNotFound {
		t.Errorf("/x%%2Fy: got %v, %s", got, values(&m, "", "/x%2Fy"))
	}
	if got := r.Lookup("GET", "", "/end/x%2F", &m); got != router.OutcomeNotFound {
		t.Errorf("/end/x%%2F: got %v", got)
	}
	if r.Lookup("GET", "", "/x2F%2Fy", &m); values(&m, "", "/x2F%2Fy") != "a=x b=/y" {
		t.Errorf("/x2F%%2Fy: got %s", values(&m, "", "/x2F%2Fy"))
	}
}

func TestMethods(t *testing.T) {
	r := build(t,
		route{Methods: "GET", Pattern: "/a", Value: "get"},
		route{Methods: "QUERY, PURGE", Pattern: "/a", Value: "custom"},
		route{Methods: "HEAD", Pattern: "/h", Value: "head"},
		route{Methods: "GET", Pattern: "/h", Value: "get"},
		route{Methods: "*", Pattern: "/any", Value: "any"},
		route{Methods: "GET", Pattern: "/any", Value: "get"},
		route{Methods: "DELETE", Pattern: "/{x}", Value: "named"},
		route{Methods: "POST", Pattern: "/new", Value: "static"},
	)
	var m router.Match[string]
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/a", "get"}, {"HEAD", "/a", "get head"}, {"PURGE", "/a", "custom"}, {"QUERY", "/a", "custom"},
		{"HEAD", "/h", "head"}, {"HEAD", "/any", "get head"}, {"BREW", "/any", "any"}, {"OPTIONS", "/any", "any"},
		{"DELETE", "/a", "named"}, {"DELETE", "/new", "named"}, {"POST", "/new", "static"},
		{"POST", "/a", "GET, HEAD, DELETE, OPTIONS, QUERY, PURGE"},
		{"get", "/x", "DELETE, OPTIONS"}, {"OPTIONS", "/new", "POST, DELETE, OPTIONS"},
	} {
		got := ""
		switch r.Lookup(test.method, "", test.path, &m) {
		case router.OutcomeFound:
			got = m.Route().Value
			if m.HeadFromGet() {
				got += " head"
			}
		case router.OutcomeMethodNotAllowed:
			got = m.Allow()
		}
		if got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.method, test.path, got, test.want)
		}
	}
	var many router.Router[string]
	for i := range 54 {
		if err := many.Add(route{Methods: fmt.Sprintf("M%d", i), Pattern: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := many.Add(route{Methods: "M54", Pattern: "/"}); err == nil {
		t.Error("got no error for 64 methods")
	}
}

func TestPrefixRoutes(t *testing.T) {
	r := build(t,
		route{Methods: "*", Pattern: "/legacy/", Prefix: true, Value: "prefix"},
		route{Methods: "GET", Pattern: "/legacy/new", Value: "new"},
		route{Methods: "GET", Pattern: "/t/{id}", Prefix: true, Value: "tenant"},
		route{Methods: "POST", Pattern: "/legacy", Value: "exact"},
	)
	var m router.Match[string]
	for _, test := range []struct{ method, path, want, rest string }{
		{"GET", "/legacy", "prefix", ""}, {"GET", "/legacy/", "prefix", "/"}, {"PUT", "/legacy/a/b", "prefix", "/a/b"},
		{"GET", "/legacy/new", "new", ""}, {"POST", "/legacy/new", "prefix", "/new"}, {"POST", "/legacy", "exact", ""},
		{"GET", "/t/7", "tenant", ""}, {"GET", "/t/7/x/", "tenant", "/x/"},
		{"GET", "/legacyx", "", ""}, {"GET", "/legacy/../a", "", ""}, {"GET", "/t/", "", ""},
	} {
		if got := r.Lookup(test.method, "", test.path, &m); got != router.OutcomeFound {
			if test.want != "" {
				t.Errorf("%s %s: got %v", test.method, test.path, got)
			}
			continue
		}
		rest := ""
		if m.Route().Prefix {
			rest = test.path[m.Rest():]
		} else if m.Rest() != 0 {
			t.Errorf("%s: got rest %d", test.path, m.Rest())
		}
		if m.Route().Value != test.want || rest != test.rest {
			t.Errorf("%s %s: got %s with rest %q, want %s with %q", test.method, test.path, m.Route().Value, rest, test.want, test.rest)
		}
	}
	all := build(t, route{Methods: "GET", Pattern: "/", Prefix: true}, route{Methods: "GET", Pattern: "/a"})
	for path, rest := range map[string]int{"/": 0, "/x": 0, "/a": 0} {
		if got := all.Lookup("GET", "", path, &m); got != router.OutcomeFound || m.Rest() != rest {
			t.Errorf("%s: got %v, rest %d", path, got, m.Rest())
		}
	}
}

func TestTrailingSlashAlternative(t *testing.T) {
	r := build(t, route{Methods: "GET", Pattern: "/a"}, route{Methods: "GET", Pattern: "/{x:int}/"})
	var m router.Match[string]
	for path, want := range map[string]bool{"/a/": true, "/a": false, "/7": true, "/7/": false, "/b": false, "/": false, "": false} {
		if got := r.OtherSlash("GET", "", path, &m); r.Lookup("GET", "", path, &m) != router.OutcomeFound && got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestManyParameters(t *testing.T) {
	pattern, path, want := "", "", []string{}
	for i := range 40 {
		pattern += fmt.Sprintf("/{p%d}", i)
		path += fmt.Sprintf("/v%d", i)
		want = append(want, fmt.Sprintf("p%d=v%d", i, i))
	}
	r := build(t, route{Methods: "GET", Pattern: pattern})
	var m router.Match[string]
	for range 2 {
		if got := r.Lookup("GET", "", path, &m); got != router.OutcomeFound || values(&m, "", path) != strings.Join(want, " ") {
			t.Fatalf("got %v %s", got, values(&m, "", path))
		}
	}
	if m.Index("p39") != 39 || m.Index("p40") != -1 {
		t.Error("Index: wrong result")
	}
	m.Reset()
	if m.Route() != nil || m.Len() != 0 || m.Index("p1") != -1 {
		t.Error("Reset: the match still has a route")
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Skip("allocations are not counted in race builds")
	}
	r := build(t,
		route{Methods: "GET", Pattern: "/static"},
		route{Methods: "GET", Pattern: `/w/{word:^\w+$}`},
		route{Methods: "GET", Pattern: "/u/{a:uuid}/{b:ipv4}"},
		route{Methods: "GET", Pattern: "/{f}.{e:alnum}"},
		route{Methods: "POST", Pattern: "/{f}"},
		route{Methods: "GET", Pattern: "/f/{rest...}"},
		route{Methods: "GET", Pattern: "/ver/v", Version: "v1"},
		route{Methods: "GET", Pattern: "/h", Host: "{t}.example.com"},
	)
	if err := r.ConstraintFunc("even", func(s string) bool { return len(s)%2 == 0 }); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(route{Methods: "GET", Pattern: "/e/{x:even}"}); err != nil {
		t.Fatal(err)
	}
	var m router.Match[string]
	for _, path := range []string{
		"/static", "/w/word", "/w/w-d", "/u/8E605AD7-554A-450D-A72D-D0098D336E8E/127.0.0.1", "/a.b.c", "/a%2F.b", "/only-post",
		"/f/a/b/c", "/f/a/../c", "/ver/v", "/h", "/e/a%2F", "/e/abc", "/not/found", "/" + strings.Repeat("x/", 30_000), "/" + strings.Repeat("%2F.", 16_000),
	} {
		if n := testing.AllocsPerRun(10, func() {
			r.LookupAccept("GET", "Acme.example.com:80", path, "application/vnd.x.v2", &m)
			_ = m.Allow()
		}); n != 0 && path != "/only-post" {
			t.Errorf("%.40s: got %v allocations", path, n)
		}
	}
	hello := build(t, route{Methods: "GET", Pattern: "/"})
	if n := testing.AllocsPerRun(10, func() { hello.Lookup("POST", "", "/", &m); _ = m.Allow() }); n != 0 {
		t.Errorf("method not allowed: got %v allocations", n)
	}
}

// TestAddWhileServing adds routes during concurrent lookups. Every route is found once Add has returned.
func TestAddWhileServing(t *testing.T) {
	const n = 500
	var r router.Router[string]
	added := make(chan string, n)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var m router.Match[string]
			for path := range added {
				for _, p := range []string{path, "/b/7" + path, "/b/x" + path} {
					if got := r.Lookup("GET", "a.example.com", p, &m); got != router.OutcomeFound {
						t.Errorf("%s: got %v", p, got)
					}
				}
				r.Lookup("PURGE", "", "/none", &m)
			}
		})
	}
	for i := range n {
		path := fmt.Sprintf("/r%d", i)
		for _, reg := range []route{
			{Methods: "GET", Pattern: path},
			{Methods: "GET", Pattern: "/b/{id:int}" + path, Host: "a.example.com"},
			{Methods: "GET", Pattern: "/b/{id}" + path, Host: "{t}.example.com", Prefix: true},
		} {
			if err := r.Add(reg); err != nil {
				t.Error(err)
			}
		}
		added <- path
	}
	close(added)
	wg.Wait()
}

// TestAddToPathWhileServing adds routes that take precedence over others with the same path. A concurrent lookup always finds a
// route for its method, and never a route that has already been replaced.
func TestAddToPathWhileServing(t *testing.T) {
	steps := []route{
		{Methods: "GET,POST", Pattern: "/a", Prefix: true},
		{Methods: "*", Pattern: "/a"},
		{Methods: "GET", Pattern: "/a"},
		{Methods: "POST", Pattern: "/a"},
		{Methods: "GET,POST", Pattern: "/a", Version: "v1"},
	}
	// The steps whose routes answer the method, in order.
	answers := map[string][]int{"GET": {0, 1, 2, 4}, "POST": {0, 1, 3, 4}}
	for range 1000 {
		r := build(t, steps[0])
		var started, wg sync.WaitGroup
		for method, answers := range answers {
			started.Add(1)
			wg.Go(func() {
				started.Done()
				var m router.Match[string]
				for i, step := 1, 0; step < len(steps)-1; i++ {
					if r.LookupAccept(method, "", "/a", "application/vnd.x.v1", &m) != router.OutcomeFound {
						t.Errorf("%s not found", method)
						return
					}
					next := slices.Index(steps, *m.Route())
					if next < step || !slices.Contains(answers, next) {
						t.Errorf("%s found route %d after route %d", method, next, step)
						return
					}
					step = next
					if i%1000 == 0 {
						runtime.Gosched() // let the registration run on this processor
					}
				}
			})
		}
		started.Wait()
		for _, reg := range steps[1:] {
			if err := r.Add(reg); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
	}
}

// TestStaticSegmentLengths looks up similar segments, after one static edge and after many.
func TestStaticSegmentLengths(t *testing.T) {
	const text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
	var all router.Router[string]
	for n := 1; n <= 40; n++ {
		reg := route{Methods: "GET", Pattern: "/" + text[:n], Value: text[:n]}
		if err := all.Add(reg); err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*router.Router[string]{"one route": build(t, reg), "all routes": &all} {
			var m router.Match[string]
			if r.Lookup("GET", "", reg.Pattern, &m) != router.OutcomeFound || m.Value() != reg.Value {
				t.Errorf("%s, %s: got %q", reg.Pattern, name, m.Value())
			}
			for i := range n {
				other := reg.Pattern[:1+i] + "X" + reg.Pattern[2+i:]
				if r.Lookup("GET", "", other, &m) != router.OutcomeNotFound {
					t.Errorf("%s, %s: got %q", other, name, m.Value())
				}
			}
			for _, other := range []string{reg.Pattern + "\x00", reg.Pattern + text[n:n+1], reg.Pattern + "/"} {
				if r.Lookup("GET", "", other, &m) != router.OutcomeNotFound {
					t.Errorf("%q, %s: got %q", other, name, m.Value())
				}
			}
		}
	}
}

// A copied match does not change when its source is used again.
func TestMatchCopyTo(t *testing.T) {
	var r router.Router[string]
	for _, pattern := range []string{"/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}", "/x"} {
		if err := r.Add(router.Route[string]{Methods: "GET", Pattern: pattern, Value: pattern}); err != nil {
			t.Fatal(err)
		}
	}
	var m, other router.Match[string]
	const path = "/0/1/2/3/4/5/6/7/8/9"
	r.Lookup("GET", "", path, &m)
	m.CopyTo(&other)
	r.Lookup("GET", "", "/00/11/22/33/44/55/66/77/88/99", &m)
	if other.Route() == nil || other.Len() != 10 {
		t.Fatalf("got a copy with route %v and %d parameters", other.Route(), other.Len())
	}
	for i := range other.Len() {
		if got, want := other.Span(i).Of(path), string(rune('0'+i)); got != want {
			t.Errorf("parameter %s: got %q, want %q", other.Name(i), got, want)
		}
	}
}
