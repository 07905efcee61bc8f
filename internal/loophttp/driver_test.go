//go:build linux

package loophttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// State left by a call in a driver does not affect a later call with another wire. Streams of events and blocking actions are
// arranged such that a driver gets back an unused wire it has had before. It then waits for a body, for which it must release
// the lock of that wire and no other.
func TestLoopDriverReusesWire(t *testing.T) {
	const rounds = 20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one loop
	type gates struct{ hold, open, block chan bool }
	all := make([]gates, rounds)
	for i := range all {
		all[i] = gates{make(chan bool), make(chan bool), make(chan bool)}
	}
	over := make(chan bool)
	passes := func(gate chan bool) { // until the gate opens, or the test has failed
		select {
		case <-gate:
		case <-over:
		}
	}
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		ends := func(*dunlin.Events) error { return nil }
		of := func(r *dunlin.Request) gates {
			round, err := dunlin.Param[int](r, "round")
			if err != nil {
				t.Error(err)
			}
			return all[round]
		}
		app.Get("/ends", func(*dunlin.Request) dunlin.Response { return dunlin.SSE(ends) })
		app.Get("/open/{round}", func(r *dunlin.Request) dunlin.Response {
			until := of(r).open
			return dunlin.SSE(func(e *dunlin.Events) error {
				err := e.Comment("open")
				passes(until)
				return err
			})
		})
		app.Get("/late/{round}", func(r *dunlin.Request) dunlin.Response {
			passes(of(r).hold)
			return dunlin.SSE(ends)
		})
		app.Get("/block/{round}", func(r *dunlin.Request) dunlin.Response {
			passes(of(r).block)
			return dunlin.NoContent()
		})
		app.Post("/read", func(r *dunlin.Request) dunlin.Response {
			n, err := io.Copy(io.Discard, r.Body())
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.JSON(n)
		})
	})
	t.Cleanup(func() { close(over) }) // before the shutdown of the service, which waits for its actions
	probe := func() {                 // by the current driver of the loop
		suite.Answered(t, bufio.NewReader(suite.AskConn(t, addr, suite.Request("GET /probe"))), 200, "probe")
	}
	whole := func(conn net.Conn) {
		if got, err := suite.ReadAnswer(bufio.NewReader(conn), "GET"); err != nil || !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	for i, gate := range all {
		round := fmt.Sprint("/", i)
		stream := suite.AskConn(t, addr, suite.Request("GET /open"+round)) // continues in the background; the loop gets a second driver
		late := suite.AskConn(t, addr, suite.Request("GET /late"+round))   // is taken over by a third one
		probe()
		close(gate.open)
		whole(stream) // frees the second one
		close(gate.hold)
		whole(late) // the first one continues in the background with the second
		blocked := suite.AskConn(t, addr, suite.Request("GET /block"+round))
		probe()                                                   // served by one of them, which takes over
		whole(suite.AskConn(t, addr, suite.Request("GET /ends"))) // it gets back its earlier wire
		read := suite.AskConn(t, addr, suite.Request("POST /read", "Content-Length: 100000")+"beginning")
		probe()
		suite.Send(t, read, strings.Repeat("x", 100_000-len("beginning")))
		suite.Answered(t, bufio.NewReader(read), 200, "100000")
		close(gate.block)
		if got, err := suite.ReadAnswer(bufio.NewReader(blocked), "GET"); err != nil || !strings.HasPrefix(got, "HTTP/1.1 204") {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}
