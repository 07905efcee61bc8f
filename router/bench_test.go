package router_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/router"
)

// request is a method and a path to look up.
type request struct{ method, path string }

// githubRoutes returns the routes of the fixture, one method each.
func githubRoutes(tb testing.TB) []router.Route[int] {
	tb.Helper()
	text, err := os.ReadFile("testdata/github.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var routes []router.Route[int]
	for line := range strings.Lines(string(text)) {
		methods, pattern, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || methods == "#" {
			continue
		}
		for method := range strings.SplitSeq(methods, ",") {
			routes = append(routes, router.Route[int]{Methods: method, Pattern: pattern, Value: len(routes)})
		}
	}
	if len(routes) != 203 {
		tb.Fatalf("got %d routes in the fixture, want 203", len(routes))
	}
	return routes
}

// githubRequests fills the parameters with their names.
func githubRequests(routes []router.Route[int]) []request {
	var requests []request
	unbrace := strings.NewReplacer("{", "", "}", "")
	for _, r := range routes {
		requests = append(requests, request{r.Methods, unbrace.Replace(r.Pattern)})
	}
	return requests
}

// build registers routes. All of them must be accepted.
func build[T any](tb testing.TB, routes ...router.Route[T]) *router.Router[T] {
	tb.Helper()
	r := new(router.Router[T])
	for _, reg := range routes {
		if err := r.Add(reg); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

// lookUp benchmarks the lookup of all requests. All of them must match.
func lookUp[T any](b *testing.B, r *router.Router[T], requests ...request) {
	b.Helper()
	var m router.Match[T]
	for _, q := range requests {
		if r.Lookup(q.method, "", q.path, &m) != router.OutcomeFound {
			b.Fatalf("%s %s: not found", q.method, q.path)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range requests {
			r.Lookup(requests[i].method, "", requests[i].path, &m)
		}
	}
}

func BenchmarkGitHub(b *testing.B) {
	routes := githubRoutes(b)
	lookUp(b, build(b, routes...), githubRequests(routes)...)
}

func BenchmarkStatic(b *testing.B) {
	lookUp(b, build(b, router.Route[int]{Methods: "GET,HEAD", Pattern: "/hello"}), request{"GET", "/hello"})
}

func BenchmarkExpression(b *testing.B) {
	lookUp(b, build(b, router.Route[int]{Methods: "GET,HEAD", Pattern: `/test/{word:^\w+$}`}), request{"GET", "/test/foo"})
}

func BenchmarkUUIDAndIPv4(b *testing.B) {
	lookUp(b, build(b,
		router.Route[int]{Methods: "GET,HEAD", Pattern: "/static/{uuid:uuid}/{ip:ipv4}"},
		router.Route[int]{Methods: "GET,HEAD", Pattern: "/static/{ip:ipv4}/{uuid:uuid}"},
	),
		request{"GET", "/static/8E605AD7-554A-450D-A72D-D0098D336E8E/127.0.0.1"},
		request{"GET", "/static/127.0.0.1/8E605AD7-554A-450D-A72D-D0098D336E8E"},
	)
}

// growingPaths returns "/", "/0/", "/0/1/" and so on.
func growingPaths(n int) []request {
	path := "/"
	var requests []request
	for i := range n {
		requests = append(requests, request{"GET", path})
		path += fmt.Sprint(i) + "/"
	}
	return requests
}

func BenchmarkGrowingPath(b *testing.B) {
	r := build(b,
		router.Route[int]{Methods: "GET,HEAD", Pattern: "/hello"},
		router.Route[int]{Methods: "GET,HEAD", Pattern: `/hello/{word:^\w+$}/`},
		router.Route[int]{Methods: "GET,HEAD", Pattern: "/{rest...}"},
	)
	lookUp(b, r, growingPaths(100)...)
}

// manyRoutes returns n routes of a service with many kinds of resources.
func manyRoutes(n int) []router.Route[int] {
	var routes []router.Route[int]
	for i := 0; len(routes) < n; i++ {
		base := fmt.Sprintf("/api/v1/resource%d", i)
		for _, p := range []string{"", "/{id:int}", "/{id:int}/parts", "/{id:int}/parts/{part}"} {
			routes = append(routes, router.Route[int]{Methods: "GET", Pattern: base + p, Place: "main.go:1"})
		}
	}
	return routes[:n]
}

func manyRequests(routes []router.Route[int]) []request {
	var requests []request
	fill := strings.NewReplacer("{id:int}", "12345", "{part}", "wheel")
	for i := range routes {
		// A stride that is coprime to the count visits all routes, in an order that caches cannot predict.
		requests = append(requests, request{"GET", fill.Replace(routes[i*7919%len(routes)].Pattern)})
	}
	return requests
}

// BenchmarkMany looks up all routes of a large router one after the other. A separate benchmark also reads the stored value of a route,
// which is in another part of memory.
func BenchmarkMany(b *testing.B) {
	for _, n := range []int{200, 10_000} {
		routes := manyRoutes(n)
		r, requests := build(b, routes...), manyRequests(routes)
		var m router.Match[int]
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q := &requests[i%n]
				r.Lookup(q.method, "", q.path, &m)
			}
		})
		b.Run(fmt.Sprint(n, "/values"), func(b *testing.B) {
			b.ReportAllocs()
			sum := 0
			for i := 0; b.Loop(); i++ {
				q := &requests[i%n]
				r.Lookup(q.method, "", q.path, &m)
				sum += m.Value()
			}
		})
	}
}

func BenchmarkRegister(b *testing.B) {
	routes := manyRoutes(10_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := build(b, routes...)
	runtime.GC()
	runtime.ReadMemStats(&after)
	bytes := float64(after.HeapAlloc) - float64(before.HeapAlloc)
	runtime.KeepAlive(r)
	b.ReportAllocs()
	for b.Loop() {
		build(b, routes...)
	}
	b.ReportMetric(bytes/float64(len(routes)), "B/route")
}

func BenchmarkExpensivePaths(b *testing.B) {
	r := build(b,
		router.Route[int]{Methods: "GET", Pattern: "/{a:int}/{b:alpha}/{c}/x"},
		router.Route[int]{Methods: "GET", Pattern: "/{a}/{b:slug}/{c:hex}/y"},
		router.Route[int]{Methods: "GET", Pattern: "/{a}.{b}-{c}.{d}/x"},
		router.Route[int]{Methods: "GET", Pattern: `/{a:^(a|aa)+$}/x`},
	)
	for _, size := range []int{16 << 10, 64 << 10} {
		for name, path := range map[string]string{
			"segments": "/" + strings.Repeat("1/a/", size/4),
			"dots":     "/" + strings.Repeat(".-", size/2),
			"a":        "/" + strings.Repeat("a", size),
			"escapes":  "/" + strings.Repeat("%2F", size/3),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				var m router.Match[int]
				b.ReportAllocs()
				for b.Loop() {
					r.Lookup("GET", "", path, &m)
				}
			})
		}
	}
}
