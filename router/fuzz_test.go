package router_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/router"
)

// generator makes routes and requests that often match.
type generator struct{ *rand.Rand }

func (g generator) pick(options ...string) string { return options[g.IntN(len(options))] }

// segment returns a segment of a pattern. Its parameters are numbered from *n.
func (g generator) segment(n *int) string {
	name := func() string { *n++; return fmt.Sprintf("p%d", *n) }
	switch g.IntN(12) {
	case 0, 1, 2, 3:
		return g.pick("a", "b", "ab", "static-text", "1", "a.b", "longer-static-text-1")
	case 4, 5, 6:
		return "{" + name() + "}"
	case 7, 8:
		return "{" + name() + ":" + g.pick("int", "alpha", "hex", "a|b.*", `\W+`) + "}"
	case 9:
		return "{" + name() + "}." + "{" + name() + "}"
	case 10:
		return g.pick("a", "v", "-") + "{" + name() + g.pick("", ":int") + "}"
	default:
		return "{" + name() + "}" + g.pick("-", "b", ".x") + "{" + name() + g.pick("", ":alpha") + "}" + g.pick("", "!")
	}
}

func (g generator) route() router.Route[int] {
	var r router.Route[int]
	n := 0
	r.Methods = g.pick("GET", "GET", "POST", "GET,HEAD", "HEAD", "*", "PURGE", "PUT,PURGE")
	r.Host = g.pick("", "", "", "a.b", "{h}.b", "{h:int}.b", "{h}.{i}", "x-{h}.b", "A.B")
	for range g.IntN(4) {
		r.Pattern += "/" + g.segment(&n)
	}
	switch g.IntN(6) {
	case 0:
		r.Pattern += "/"
	case 1:
		r.Pattern += "/{rest...}"
	case 2:
		r.Prefix = true
	}
	if r.Pattern == "" {
		r.Pattern = "/"
	}
	return r
}

func (g generator) path() string {
	path := ""
	for range g.IntN(5) {
		path += "/" + g.pick("a", "b", "ab", "static-text", "1", "-12", "a.b", "a.b.c", "v1", "a-b", "x-b!", "..", ".", "",
			"a.x", "abc", "longer-static-text-1", "longer-static-text-2", "!?", "ff", "é", "bbbbbbbbb", ".a", "a.", "...", "--1")
	}
	if path == "" || g.IntN(6) == 0 {
		path += "/"
	}
	return path
}

// FuzzLookup compares the router with its reference implementation on generated routes and requests. Routes are added in two orders,
// with the
// same result.
func FuzzLookup(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		var forward, backward router.Router[int]
		var naive naiveRouter
		var accepted []router.Route[int]
		for range size%40 + 1 {
			reg := g.route()
			reg.Value = len(accepted)
			err := forward.Add(reg)
			if conflict := new(router.ConflictError); errors.As(err, &conflict) {
				checkConflict(t, reg, conflict)
				continue
			} else if err != nil {
				if strings.Contains(err.Error(), "ambiguous") {
					continue
				}
				t.Fatal(err)
			}
			accepted = append(accepted, reg)
			naive.add(reg.Methods, reg.Host, reg.Pattern, reg.Prefix)
		}
		for _, reg := range slices.Backward(accepted) {
			if err := backward.Add(reg); err != nil {
				t.Fatalf("accepted in only one order: %v", err)
			}
		}
		for range 60 {
			method := g.pick("GET", "HEAD", "POST", "PURGE", "BREW")
			host := g.pick("", "a.b", "A.b:80", "1.b", "x-y.b", "q.r", "a.b.c", "a.b.")
			path := g.path()
			want := describeNaive(&naive, method, host, path)
			for _, r := range []*router.Router[int]{&forward, &backward} {
				if got := describeLookup(r, method, host, path); got != want {
					t.Fatalf("%s %s %s\ngot  %s\nwant %s\nroutes:\n%s", method, host, path, got, want, listing(accepted))
				}
			}
		}
	})
}

// checkConflict checks that both routes of a conflict match its example.
func checkConflict(t *testing.T, reg router.Route[int], c *router.ConflictError) {
	t.Helper()
	host, path := "", c.Example
	if i := strings.Index(path, "/"); i > 0 {
		host, path = path[:i], path[i:]
	}
	var naive naiveRouter
	naive.add("*", reg.Host, reg.Pattern, reg.Prefix)
	if _, ok := naive.routes[0].match(host, path); !ok {
		t.Fatalf("%v: the route does not match the example", c)
	}
}

func listing(routes []router.Route[int]) string {
	var b strings.Builder
	for _, r := range routes {
		fmt.Fprintf(&b, "%d %s prefix=%v\n", r.Value, r.String(), r.Prefix)
	}
	return b.String()
}

func describeNaive(n *naiveRouter, method, host, path string) string {
	i, values, allowed := n.find(method, host, path)
	if i >= 0 {
		return fmt.Sprintf("route %d %q", i, values)
	}
	if allowed == nil {
		return "not found"
	}
	if slices.Contains(allowed, "GET") {
		allowed = append(allowed, "HEAD")
	}
	allowed = append(allowed, "OPTIONS")
	slices.Sort(allowed)
	return "allow " + strings.Join(slices.Compact(allowed), ",")
}

func describeLookup(r *router.Router[int], method, host, path string) string {
	var m router.Match[int]
	switch outcome := r.Lookup(method, host, path, &m); outcome {
	case router.OutcomeFound:
		values := []string(nil)
		for i := range m.Len() {
			from := path
			if m.InHost(i) {
				from = strings.ToLower(host)
			}
			values = append(values, m.Span(i).Of(from))
		}
		return fmt.Sprintf("route %d %q", m.Route().Value, values)
	case router.OutcomeMethodNotAllowed:
		allowed := strings.Split(m.Allow(), ", ")
		slices.Sort(allowed)
		return "allow " + strings.Join(allowed, ",")
	default:
		return outcome.String()
	}
}
