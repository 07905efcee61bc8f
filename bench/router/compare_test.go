package router_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// githubRoutes reads the fixture of the core's router.
func githubRoutes(tb testing.TB) []route {
	tb.Helper()
	text, err := os.ReadFile("../../router/testdata/github.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var routes []route
	for line := range strings.Lines(string(text)) {
		methods, pattern, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || methods == "#" {
			continue
		}
		for method := range strings.SplitSeq(methods, ",") {
			routes = append(routes, route{method, pattern})
		}
	}
	return routes
}

// requests returns a request for each route, with the names of parameters as their values.
func requests(routes []route) []*http.Request {
	var all []*http.Request
	for _, r := range routes {
		all = append(all, httptest.NewRequest(r.method, strings.NewReplacer("{", "", "}", "").Replace(r.pattern), nil))
	}
	return all
}

// discard is a writer that keeps the last status.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// check requests every route once. For frameworks that write the status after the handler, it checks that they have answered
// 204.
func check(tb testing.TB, h http.Handler, requests []*http.Request) {
	tb.Helper()
	for _, r := range requests {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusNoContent {
			tb.Fatalf("%s %s: got %d", r.Method, r.URL.Path, w.Code)
		}
	}
}

func TestPeersAnswer(t *testing.T) {
	routes := githubRoutes(t)
	if len(routes) != 203 {
		t.Fatalf("got %d routes, want 203", len(routes))
	}
	for _, peer := range peers {
		t.Run(peer.name, func(t *testing.T) { check(t, peer.build(routes), requests(routes)) })
	}
}

func compare(b *testing.B, routes []route) {
	for _, peer := range peers {
		b.Run("router="+peer.name, func(b *testing.B) {
			h, all := peer.build(routes), requests(routes)
			check(b, h, all)
			w := &discard{header: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range all {
					h.ServeHTTP(w, r)
				}
			}
		})
	}
}

// BenchmarkGitHub requests all 203 routes in each iteration.
func BenchmarkGitHub(b *testing.B) { compare(b, githubRoutes(b)) }

// BenchmarkStatic and BenchmarkNamed look up one route of a service that has two.
func BenchmarkStatic(b *testing.B) { compare(b, []route{{"GET", "/hello"}}) }
func BenchmarkNamed(b *testing.B)  { compare(b, []route{{"GET", "/test/{word}"}}) }
