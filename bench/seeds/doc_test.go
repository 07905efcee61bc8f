// Package seeds measures again what five blog posts measured on the way of an HTTP request through Go,
// with Dunlin beside it. The code is written from the posts' descriptions, and their figures, of
// other years and machines, are quoted in the comments: compare ratios, not nanoseconds.
//
//	go test -C bench -run '^$' -bench . -benchmem -cpu 1 -count 5 ./seeds
//
// Every benchmark looks at its result once before the clock starts. Post 002 (routing) is measured in bench/router,
// post 003 (memory under load) by the scenarios users and stages of bench/cmd/compare, whose profile command draws what
// posts 000 and 002 had looked at with pprof.
package seeds_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// discard is a response writer that keeps nothing. As a server does, it gives every request an
// empty header map; as fair play to all, the map itself is reused.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func newDiscard() *discard { return &discard{header: make(http.Header, 8)} }

func (d *discard) Header() http.Header    { return d.header }
func (d *discard) WriteHeader(status int) { d.status = status }

func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return len(p), nil
}

// WriteString is there because the writers of net/http have it.
func (d *discard) WriteString(s string) (int, error) {
	d.bytes += len(s)
	return len(s), nil
}

// reset begins the next request.
func (d *discard) reset() {
	clear(d.header)
	d.status, d.bytes = 0, 0
}

// answer is the response as a client sees it.
type answer struct {
	status  int
	headers map[string]string
	body    string
}

// check asks the handler once and compares.
func check(tb testing.TB, handler http.Handler, request *http.Request, want answer) {
	tb.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code != want.status {
		tb.Fatalf("status %d, want %d", recorder.Code, want.status)
	}
	for name, value := range want.headers {
		if got := recorder.Header().Get(name); got != value {
			tb.Fatalf("%s: %q, want %q", name, got, value)
		}
	}
	if got := recorder.Body.String(); got != want.body {
		tb.Fatalf("body %q, want %q", got, want.body)
	}
}
