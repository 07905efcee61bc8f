//go:build linux

package loophttp_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

const (
	allocRequests = 100_000
	allocBatch    = 16 // number of pipelined requests
	// allocSlack is the number of additional allocations allowed to the runtime and the engine: takeovers on a busy machine,
	// pools emptied by the garbage collector.
	allocSlack = 1000
	chunkBytes = 4096 // a chunk of safe strings is one allocation
)

// A request over a real socket allocates only its share of a chunk for the strings that its action reads.
func TestLoopAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	block := dunlin.NewHeaderBlock("Content-Type", "text/plain", "Cache-Control", "public,max-age=30")
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/plaintext", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") })
		app.Get("/json", func(*dunlin.Request) dunlin.Response {
			return dunlin.JSON(struct {
				Message string `json:"message"`
			}{"Hello, World!"})
		})
		app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("id")) })
		app.Get("/headers", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello world!").With(block) })
	})
	const id = "0194e2c6-5f3a-7b21-9c5d-2f6a8b1c3d4e"
	for _, c := range []struct {
		path  string
		bytes int // bytes of safe strings per request
	}{{"/plaintext", 0}, {"/json", 0}, {"/users/" + id, len(id)}, {"/headers", 0}} {
		t.Run(c.path[1:], func(t *testing.T) {
			mallocs := loopMallocs(t, addr, c.path)
			var chunks uint64
			if c.bytes > 0 {
				chunks = allocRequests/uint64(chunkBytes/c.bytes) + 1
			}
			if got := mallocs; got > chunks+allocSlack {
				t.Errorf("%d allocations for %d requests, want %d for strings and at most %d more", got, allocRequests, chunks, allocSlack)
			} else {
				t.Logf("%d allocations, %d of them for strings", got, chunks)
			}
		})
	}
}

// loopMallocs returns the number of allocations of allocRequests requests for path.
func loopMallocs(t *testing.T, addr, path string) uint64 {
	t.Helper()
	conn := suite.Dial(t, addr)
	suite.Send(t, conn, suite.Request("GET "+path))
	answer := make([]byte, 1000)
	n, err := conn.Read(answer)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 OK\r\n")) {
		t.Fatalf("got %q, %v", answer[:n], err)
	}
	batch, answers := []byte(strings.Repeat(suite.Request("GET "+path), allocBatch)), make([]byte, allocBatch*n)
	exchange := func(requests int) {
		for range requests / allocBatch {
			if _, err := conn.Write(batch); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, answers); err != nil {
				t.Fatal(err)
			}
		}
	}
	exchange(1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	exchange(allocRequests)
	runtime.ReadMemStats(&after)
	if want := []byte("HTTP/1.1 200 OK\r\n"); bytes.Count(answers, want) != allocBatch {
		t.Errorf("the last answers: got %q", answers)
	}
	return after.Mallocs - before.Mallocs
}

// Features do not allocate for an ordinary answer.
func TestLoopAllocationsOfFeatures(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	security := dunlin.NewHeaderBlock("X-Content-Type-Options", "nosniff")
	var seen atomic.Int64
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
			if info.Header("Origin") != "" {
				resp = resp.Header("Access-Control-Allow-Origin", "*")
			}
			return resp.With(security)
		}})
		app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) { seen.Add(int64(info.Status())) }})
		app.Get("/plaintext", suite.Text("Hello, World!"))
		app.Get("/own", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!").Header("X-Own", "1") })
	})
	for _, path := range []string{"/plaintext", "/own"} {
		if got := loopMallocs(t, addr, path); got > allocSlack {
			t.Errorf("%s: got %d allocations for %d requests", path, got, allocRequests)
		}
	}
	if seen.Load() == 0 {
		t.Error("nothing was observed")
	}
}

// A context is allocated only on demand.
func TestLoopContextIsAllocatedOnDemand(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/context", func(r *dunlin.Request) dunlin.Response {
			if err := r.Context().Err(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		})
		app.Get("/without", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
	})
	const requests = 2000
	mallocs := func(path string) uint64 {
		conn := suite.Dial(t, addr)
		request, answer := []byte(suite.Request("GET "+path)), make([]byte, 1000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range requests {
			if _, err := conn.Write(request); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(answer); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	if n := mallocs("/without"); n > requests/2 {
		t.Errorf("%d allocations for %d requests without a context", n, requests)
	}
	if n := mallocs("/context"); n < requests {
		t.Errorf("%d allocations for %d requests with a context: the measure is broken", n, requests)
	}
}
