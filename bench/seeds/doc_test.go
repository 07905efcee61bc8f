// Package seeds repeats the measurements of five blog posts about HTTP requests in Go, and adds Dunlin. The code is written
// from the posts' descriptions. The comments quote their figures, of other years and machines: compare ratios, not
// nanoseconds.
//
//	go test -C bench -run '^$' -bench . -benchmem -cpu 1 -count 5 ./seeds
//
// Every benchmark checks its result once before the timer starts. Post 002 (routing) is measured in bench/router, and post
// 003 (memory under load) by the scenarios users and stages of bench/cmd/compare. Its profile command draws the profiles that
// posts 000 and 002 made with pprof.
package seeds_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// discard is a response writer that discards everything. Like a server, it gives every request an empty header map; to be
// fair to all, it reuses the map.
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

// WriteString exists because the writers of net/http have it.
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

// check calls the handler once and compares the answer.
func check(tb testing.TB, handler http.Handler, request *http.Request, want answer) {
	tb.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code != want.status {
		tb.Fatalf("status %d, want %d", recorder.Code, want.status)
	}
	for name, value := range want.headers {
		if got := recorder.Header().Get(name); got != value {
			tb.Fatalf("%s: got %q, want %q", name, got, value)
		}
	}
	if got := recorder.Body.String(); got != want.body {
		tb.Fatalf("body %q, want %q", got, want.body)
	}
}
