package seeds_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Post 004 (2014) answered a million requests with three headers and twelve bytes, first with a new slice for each header
// value, then with slices of a reused array:
//
//	fat    432 ms   48 MB   753 collections
//	slim   188 ms   85 KB     1 collection
//
// It noted that the second version was not yet safe for concurrent use. Dunlin's header blocks are.
const (
	million    = 1_000_000
	goroutines = 4
)

var bucketBody = []byte("hello world!")

var bucketAnswer = answer{
	status: http.StatusOK,
	headers: map[string]string{
		"Content-Length": "12", "Cache-Control": "public,max-age=30", "Content-Type": "text/plain",
	},
	body: string(bucketBody),
}

func fatHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header["Content-Length"] = []string{"12"}
		header["Cache-Control"] = []string{"public,max-age=30"}
		header["Content-Type"] = []string{"text/plain"}
		w.WriteHeader(http.StatusOK)
		w.Write(bucketBody)
	})
}

// slimHandler has its own bucket, so that each goroutine can have its own handler. The shared bucket of the post would be a
// data race.
func slimHandler() http.Handler {
	bucket := make([]string, 3)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		bucket[0] = "12"
		bucket[1] = "public,max-age=30"
		bucket[2] = "text/plain"
		header := w.Header()
		header["Content-Length"] = bucket[0:1]
		header["Cache-Control"] = bucket[1:2]
		header["Content-Type"] = bucket[2:3]
		w.WriteHeader(http.StatusOK)
		w.Write(bucketBody)
	})
}

var cached = dunlin.NewHeaderBlock("Content-Type", "text/plain", "Cache-Control", "public,max-age=30")

// blockHandler is the slim handler with a block that all goroutines share.
func blockHandler() http.Handler {
	length := []string{"12"}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		cached.SetIn(header)
		header["Content-Length"] = length
		w.WriteHeader(http.StatusOK)
		w.Write(bucketBody)
	})
}

// bucketApp is a complete app: unlike the handlers above it also finds the route, lends a Request and returns a Response.
func bucketApp() http.Handler {
	app := dunlin.New(dunlin.Config{})
	app.Get("/headers", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text("hello world!").With(cached)
	})
	return app
}

var bucketHandlers = []struct {
	name   string
	make   func() http.Handler
	shared bool // one handler for all goroutines
}{
	{"fat", fatHandler, true},
	{"slim", slimHandler, false},
	{"block", blockHandler, true},
	{"dunlin", bucketApp, true},
}

func TestHeaderBuckets(t *testing.T) {
	for _, h := range bucketHandlers {
		t.Run(h.name, func(t *testing.T) {
			check(t, h.make(), httptest.NewRequest("GET", "/headers", nil), bucketAnswer)
		})
	}
}

// One operation is a million calls, so that time, bytes and collections are comparable with the post's.
func BenchmarkMillionHeaders(b *testing.B) {
	calls := million
	if testing.Short() {
		calls = million / 100
	}
	for _, h := range bucketHandlers {
		b.Run(h.name, func(b *testing.B) {
			check(b, h.make(), httptest.NewRequest("GET", "/headers", nil), bucketAnswer)
			all := newCallers(h.make, h.shared)
			all.call(goroutines) // warm up
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			b.ReportAllocs()
			for b.Loop() {
				all.call(calls)
			}
			runtime.ReadMemStats(&after)
			all.verify(b)
			b.ReportMetric(float64(after.NumGC-before.NumGC)/float64(b.N), "GCs")
		})
	}
}

// callers has one caller for each goroutine, with its own writer and request.
type callers []caller

type caller struct {
	handler http.Handler
	request *http.Request
	writer  *discard
}

func newCallers(handler func() http.Handler, shared bool) callers {
	c := make(callers, goroutines)
	one := handler()
	for i := range c {
		c[i] = caller{one, httptest.NewRequest("GET", "/headers", nil), newDiscard()}
		if !shared {
			c[i].handler = handler()
		}
	}
	return c
}

// call makes n calls in total.
func (c callers) call(n int) {
	var done sync.WaitGroup
	for i := range c {
		done.Go(func() {
			one := &c[i]
			for range n / len(c) {
				one.writer.reset()
				one.handler.ServeHTTP(one.writer, one.request)
			}
		})
	}
	done.Wait()
}

// verify checks each caller's last answer.
func (c callers) verify(b *testing.B) {
	for i := range c {
		w := c[i].writer
		if w.status != http.StatusOK || w.bytes != len(bucketBody) || len(w.header) != 3 {
			b.Fatalf("last answer: got status %d, %d bytes and %d headers", w.status, w.bytes, len(w.header))
		}
	}
}
