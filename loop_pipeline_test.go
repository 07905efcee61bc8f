//go:build linux

package dunlin_test

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
)

// registerBlocking registers actions for what happens when an action leaves its
// loop. Those behind a gate block until the test opens it.
func registerBlocking(app *dunlin.App, g *gate) {
	app.Get("/quick/{n}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("n")) })
	app.Get("/taken/{n}", func(r *dunlin.Request) dunlin.Response { // taken over, unless learned
		g.pass()
		return dunlin.Text(r.Param("n"))
	})
	app.Get("/worker/{n}", func(r *dunlin.Request) dunlin.Response {
		dunlin.LearnBlocking(r)
		return dunlin.Text(r.Param("n"))
	})
	app.Post("/worker", func(r *dunlin.Request) dunlin.Response {
		dunlin.LearnBlocking(r)
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
		app.Get("/"+c.name+"/taken", func(*dunlin.Request) dunlin.Response { g.pass(); c.end(); return dunlin.Text("never") })
		app.Get("/"+c.name+"/worker", func(r *dunlin.Request) dunlin.Response {
			dunlin.LearnBlocking(r)
			c.end()
			return dunlin.Text("never")
		})
	}
	app.Post("/read", func(r *dunlin.Request) dunlin.Response {
		g.pass()
		n, err := io.Copy(io.Discard, r.Body())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprint(n))
	})
}

// Requests behind one that blocks are answered after it; other connections do
// not wait.
func TestLoopOrderBehindBlocking(t *testing.T) {
	g := newGate()
	app, addr, _ := startLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	for round := range 8 { // the first few are taken over, then the route is learned
		conn := dial(t, addr)
		send(t, conn, req("GET /quick/1")+req("GET /taken/2")+req("GET /quick/3")+req("GET /worker/4")+
			req("POST /worker", "", "five")+req("GET /taken/6")+req("GET /quick/7"))
		g.await(t)
		if round < 3 {
			soon(t, "takeover", func() bool { return dunlin.LoopStats(app).Takeovers >= uint64(round+1) })
		}
		exchangeRaw(t, addr, false, req("GET /quick/x"))
		g.open <- struct{}{}
		g.open <- struct{}{}
		br := bufio.NewReader(conn)
		for _, want := range []string{"1", "2", "3", "4", "five", "6", "7"} {
			answered(t, br, 200, want)
		}
		g.await(t)
	}
}

// A body that comes in pieces is gathered by the loop and given to a worker.
func TestLoopHandOffOfPieces(t *testing.T) {
	g := newGate()
	s := startPieces(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	requests := req("POST /worker", "", "some bytes") + req("GET /quick/1") +
		req("POST /worker", "Transfer-Encoding: chunked", "", "5\r\nin pi\r\n4\r\neces\r\n0\r\n\r\n") + req("GET /worker/2") + req("GET /quick/3")
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
				t.Fatalf("pieces of %d: %q does not follow in %q", size, want, got[at:])
			}
			at += i + len(want)
		}
	}
}

// An action that ends in another way than by returning costs its own connection
// at most, wherever it runs. What was asked before it is answered.
func TestLoopAbnormalEnds(t *testing.T) {
	g := newGate()
	app, addr, _ := startLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	for _, where := range []string{"inline", "taken", "worker"} {
		for _, how := range []string{"panic", "goexit", "abort"} {
			t.Run(how+" "+where, func(t *testing.T) {
				for range 3 {
					bystander := dial(t, addr)
					send(t, bystander, req("GET /quick/before"))
					conn := dial(t, addr)
					taken := dunlin.LoopStats(app).Takeovers
					send(t, conn, req("GET /quick/1")+req("GET /"+how+"/"+where)+req("GET /quick/2"))
					if where == "taken" {
						g.await(t)
						// Learned or not, the action has left its loop.
						soon(t, "the connection is away", func() bool {
							s := dunlin.LoopStats(app)
							return s.Takeovers > taken || s.Away > 0
						})
						g.open <- struct{}{}
					}
					br := bufio.NewReader(conn)
					answered(t, br, 200, "1")
					switch how {
					case "panic":
						answered(t, br, 500, `{"title":"Internal Server Error","status":500}`)
						answered(t, br, 200, "2")
					case "goexit":
						answered(t, br, 500, `{"title":"Internal Server Error","status":500}`)
						wantEnd(t, br)
					case "abort":
						if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !isReset(err) {
							t.Fatalf("after an abort: %q, %v", rest, err)
						}
					}
					answered(t, bufio.NewReader(bystander), 200, "before")
				}
			})
		}
	}
}

// A body in chunks goes on being read after its action has lost the loop.
func TestLoopTakeoverWithinBody(t *testing.T) {
	g := newGate()
	app, addr, _ := startLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	part := fmt.Sprintf("%x\r\n%s\r\n", 40<<10, strings.Repeat("x", 40<<10))
	for range 6 {
		conn := dial(t, addr)
		send(t, conn, req("POST /read", "Transfer-Encoding: chunked", "", part+part)) // beyond what is gathered
		g.await(t)
		soon(t, "the connection is away", func() bool { return dunlin.LoopStats(app).Away == 1 })
		g.open <- struct{}{}
		send(t, conn, part+"5\r\nhe")
		send(t, conn, "llo\r\n0\r\n\r\n"+req("GET /quick/next"))
		br := bufio.NewReader(conn)
		answered(t, br, 200, fmt.Sprint(3*40<<10+5))
		answered(t, br, 200, "next")
		_ = conn.Close()
		soon(t, "the connection is closed", func() bool { return dunlin.LoopStats(app).Conns == 0 })
	}
}

// A client that goes away leaves nothing behind, whatever its request was
// about to do.
func TestLoopClientGone(t *testing.T) {
	g := newGate()
	app, addr, _ := startLoop(t, dunlin.Config{}, func(app *dunlin.App) { registerBlocking(app, g) })
	large := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		name, send string
		gated      bool
	}{
		{"nothing sent", "", false},
		{"within a head", "GET /quick/1 HTT", false},
		{"within a small body", req("POST /worker", "Content-Length: 10") + "half", false},
		{"within chunks", req("POST /worker", "Transfer-Encoding: chunked") + "5\r\nha", false},
		{"within a chunk size", req("POST /worker", "Transfer-Encoding: chunked") + "5", false},
		{"action blocks", req("GET /taken/1"), true},
		{"action blocks, more requests wait", req("GET /taken/1") + req("GET /quick/2"), true},
		{"within a large body", req("POST /read", "Content-Length: 200000") + large, true},
		{"within large chunks", req("POST /read", "Transfer-Encoding: chunked") + "186a0\r\n" + large[:90_000], true},
		{"waiting to be asked", req("POST /read", "Content-Length: 100", "Expect: 100-continue"), true},
	} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reset %v", c.name, reset), func(t *testing.T) {
				conn := dial(t, addr)
				send(t, conn, c.send)
				if c.gated {
					g.await(t)
				} else {
					soon(t, "the connection is accepted", func() bool { return dunlin.LoopStats(app).Conns == 1 })
				}
				if reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				}
				_ = conn.Close()
				if c.gated {
					g.open <- struct{}{}
				}
				soon(t, "the connection is closed", func() bool {
					s := dunlin.LoopStats(app)
					return s.Conns == 0 && s.Away == 0 && s.PendingBytes == 0
				})
			})
		}
	}
	exchangeRaw(t, addr, false, req("GET /quick/after"))
}
