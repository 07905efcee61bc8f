//go:build linux

package loophttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// registerBlocking registers actions that leave their loop. Those with a gate block until the test opens it.
func registerBlocking(app *dunlin.App, g *suite.Gate) {
	app.Get("/quick/{n}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("n")) })
	app.Get("/taken/{n}", func(r *dunlin.Request) dunlin.Response { // taken over, unless learned
		g.Pass()
		return dunlin.Text(r.Param("n"))
	})
	suite.MarkBlocking(app, "/worker")
	app.Get("/worker/{n}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("n")) })
	app.Post("/worker", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(string(body))
	})
	for _, c := range []struct {
		name string
		end  func()
	}{
		{"panic", func() { panic("asked for") }},
		{"goexit", runtime.Goexit},
		{"abort", func() { panic(http.ErrAbortHandler) }},
	} {
		app.Get("/"+c.name+"/inline", func(*dunlin.Request) dunlin.Response { c.end(); return dunlin.Text("never") })
		app.Get("/"+c.name+"/taken", func(*dunlin.Request) dunlin.Response { g.Pass(); c.end(); return dunlin.Text("never") })
		app.Get("/"+c.name+"/worker", func(*dunlin.Request) dunlin.Response { c.end(); return dunlin.Text("never") })
	}
	app.Post("/read", func(r *dunlin.Request) dunlin.Response {
		g.Pass()
		n, err := io.Copy(io.Discard, r.Body())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprint(n))
	})
}

// Requests after a blocking one are answered after it. Other connections do not wait.
func TestLoopOrderAfterBlockingRequest(t *testing.T) {
	g := suite.NewGate()
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	for round := range 8 { // the first few are taken over, then the route is learned
		conn := suite.Dial(t, addr)
		suite.Send(t, conn, suite.Request("GET /quick/1")+suite.Request("GET /taken/2")+suite.Request("GET /quick/3")+suite.Request("GET /worker/4")+
			suite.Request("POST /worker", "", "five")+suite.Request("GET /taken/6")+suite.Request("GET /quick/7"))
		g.Await(t)
		if round < 3 {
			suite.Soon(t, "takeover", func() bool { return app.Stats().Actions.Takeovers >= uint64(round+1) })
		}
		suite.Exchange(t, addr, false, suite.Request("GET /quick/x"))
		g.Open <- struct{}{}
		g.Open <- struct{}{}
		br := bufio.NewReader(conn)
		for _, want := range []string{"1", "2", "3", "4", "five", "6", "7"} {
			suite.Answered(t, br, 200, want)
		}
		g.Await(t)
	}
}

// A body that arrives in pieces is gathered by the loop and passed to a worker.
func TestLoopHandOffOfPieces(t *testing.T) {
	g := suite.NewGate()
	s := startPieces(t, func(app *dunlin.App) { registerBlocking(app, g) })
	requests := suite.Request("POST /worker", "", "some bytes") + suite.Request("GET /quick/1") +
		suite.Request("POST /worker", "Transfer-Encoding: chunked", "", "5\r\nin pi\r\n4\r\neces\r\n0\r\n\r\n") + suite.Request("GET /worker/2") + suite.Request("GET /quick/3")
	for _, size := range []int{1, 3, 10, 100} {
		var pieces [][]byte
		for rest := []byte(requests); len(rest) > 0; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got := string(s.converse(t, pieces))
		at := 0
		for _, want := range []string{"\r\n\r\nsome bytes", "\r\n\r\n1", "\r\n\r\nin pieces", "\r\n\r\n2", "\r\n\r\n3"} {
			i := strings.Index(got[at:], want)
			if i < 0 {
				t.Fatalf("pieces of %d: got %q does not follow in %q", size, want, got[at:])
			}
			at += i + len(want)
		}
	}
}

// An action that ends without returning affects at most its own connection, on any goroutine. Earlier requests are answered.
func TestLoopAbnormalEnds(t *testing.T) {
	g := suite.NewGate()
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	for _, where := range []string{"inline", "taken", "worker"} {
		for _, how := range []string{"panic", "goexit", "abort"} {
			t.Run(how+" "+where, func(t *testing.T) {
				for range 3 {
					bystander := suite.Dial(t, addr)
					suite.Send(t, bystander, suite.Request("GET /quick/before"))
					conn := suite.Dial(t, addr)
					taken := app.Stats().Actions.Takeovers
					suite.Send(t, conn, suite.Request("GET /quick/1")+suite.Request("GET /"+how+"/"+where)+suite.Request("GET /quick/2"))
					if where == "taken" {
						g.Await(t)
						// The action has left its loop, on a learned route as well as on others.
						suite.Soon(t, "the connection is away", func() bool {
							s := app.Stats()
							return s.Actions.Takeovers > taken || s.Actions.Away > 0
						})
						g.Open <- struct{}{}
					}
					br := bufio.NewReader(conn)
					suite.Answered(t, br, 200, "1")
					switch how {
					case "panic":
						suite.Answered(t, br, 500, `{"title":"Internal Server Error","status":500}`)
						suite.Answered(t, br, 200, "2")
					case "goexit":
						suite.Answered(t, br, 500, `{"title":"Internal Server Error","status":500}`)
						suite.WantEnd(t, br)
					case "abort":
						if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !isReset(err) {
							t.Fatalf("after an abort: got %q, %v", rest, err)
						}
					}
					suite.Answered(t, bufio.NewReader(bystander), 200, "before")
				}
			})
		}
	}
}

// Reading a chunked body continues after its action has lost the loop.
func TestLoopTakeoverDuringBody(t *testing.T) {
	g := suite.NewGate()
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	part := fmt.Sprintf("%x\r\n%s\r\n", 40<<10, strings.Repeat("x", 40<<10))
	for range 6 {
		conn := suite.Dial(t, addr)
		suite.Send(t, conn, suite.Request("POST /read", "Transfer-Encoding: chunked", "", part+part)) // more than is gathered
		g.Await(t)
		suite.Soon(t, "the connection is away", func() bool { return app.Stats().Actions.Away == 1 })
		g.Open <- struct{}{}
		suite.Send(t, conn, part+"5\r\nhe")
		suite.Send(t, conn, "llo\r\n0\r\n\r\n"+suite.Request("GET /quick/next"))
		br := bufio.NewReader(conn)
		suite.Answered(t, br, 200, fmt.Sprint(3*40<<10+5))
		suite.Answered(t, br, 200, "next")
		_ = conn.Close()
		suite.Soon(t, "the connection is closed", func() bool { return app.Stats().Connections.Open == 0 })
	}
}

// A client that disconnects leaves no state, in any phase of its request.
func TestLoopClientGone(t *testing.T) {
	g := suite.NewGate()
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	large := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		name, send string
		gated      bool
	}{
		{"nothing sent", "", false},
		{"within a head", "GET /quick/1 HTT", false},
		{"within a small body", suite.Request("POST /worker", "Content-Length: 10") + "half", false},
		{"within chunks", suite.Request("POST /worker", "Transfer-Encoding: chunked") + "5\r\nha", false},
		{"within a chunk size", suite.Request("POST /worker", "Transfer-Encoding: chunked") + "5", false},
		{"action blocks", suite.Request("GET /taken/1"), true},
		{"action blocks, more requests wait", suite.Request("GET /taken/1") + suite.Request("GET /quick/2"), true},
		{"within a large body", suite.Request("POST /read", "Content-Length: 200000") + large, true},
		{"within large chunks", suite.Request("POST /read", "Transfer-Encoding: chunked") + "186a0\r\n" + large[:90_000], true},
		{"waiting to be asked", suite.Request("POST /read", "Content-Length: 100", "Expect: 100-continue"), true},
	} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reset %v", c.name, reset), func(t *testing.T) {
				conn := suite.Dial(t, addr)
				suite.Send(t, conn, c.send)
				if c.gated {
					g.Await(t)
				} else {
					suite.Soon(t, "the connection is accepted", func() bool { return app.Stats().Connections.Open == 1 })
				}
				if reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				}
				_ = conn.Close()
				if c.gated {
					g.Open <- struct{}{}
				}
				suite.Soon(t, "the connection is closed", func() bool {
					s := app.Stats()
					return s.Connections.Open == 0 && s.Actions.Away == 0 && s.Memory.Pending == 0
				})
			})
		}
	}
	suite.Exchange(t, addr, false, suite.Request("GET /quick/after"))
}
