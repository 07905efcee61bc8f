//go:build linux

package suite

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/observe"
)

// A client that pipelines many requests and does not read makes the server hold only one response.
func TestUnreadPipelineQueuesOneResponse(t *testing.T) {
	const answer, asked = 8 << 20, 10
	big := strings.Repeat("x", answer)
	app, addr, _ := StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/big", func(*dunlin.Request) dunlin.Response { return dunlin.Text(big) })
	})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(strings.Repeat(Request("GET /big"), asked))); err != nil {
		t.Fatal(err)
	}
	Soon(t, "output is pending", func() bool { return app.Stats().Memory.Pending > 0 })
	if pending := app.Stats().Memory.Pending; pending > answer+1<<20 {
		t.Errorf("%d bytes pending, want at most the %d of one answer", pending, answer)
	}
	conn.Close()
	Soon(t, "nothing is pending", func() bool { return app.Stats().Memory.Pending == 0 })
}

// Half-sent requests fill the budget. The ones that have waited longest are evicted with a response, and other clients are
// served.
func TestUnfinishedRequestsExceedBudget(t *testing.T) {
	app, addr := startSmall(t, dunlin.EngineLoop)
	part := "POST /length HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 40<<10) // needs a buffer of 64 KiB
	var conns []net.Conn
	for range 2 * smallBudget / (64 << 10) {
		conn := Dial(t, addr)
		Send(t, conn, Request("POST /length", "", "body"))
		Answered(t, bufio.NewReader(conn), 200, "4")
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		Send(t, conn, part)
	}
	Soon(t, "some are refused", func() bool { return app.Stats().Shed["largest-holder"] > 0 })
	refused := 0
	for _, conn := range conns {
		_, _ = io.WriteString(conn, "\r\nContent-Length: 1\r\n\r\nx") // the connection may be closed already
		br := bufio.NewReader(conn)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		body := Body(t, resp)
		if resp.StatusCode == 200 {
			continue
		}
		refused++
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !resp.Close || !strings.Contains(body, "memory budget of 1024 KiB") {
			t.Errorf("got %d %v %s; want 503, Retry-After, the limit, and the end", resp.StatusCode, resp.Header, body)
		}
	}
	if refused == 0 || refused == len(conns) {
		t.Errorf("%d of %d refused", refused, len(conns))
	}
	if s := app.Stats(); s.Shed["largest-holder"] != uint64(refused) {
		t.Errorf("%d refused, counted %d", refused, s.Shed["largest-holder"])
	}
}

// The clients of event streams send more data after their requests than the budget permits. Each stream reaches its own client,
// other requests are refused, and the next requests served may wait for memory for their bodies.
func TestEventStreamsExceedBudget(t *testing.T) {
	const unfinished, streams, bodies = 15, 6, 2 // bodies for each stream
	waits := make(chan struct{}, bodies)
	app, addr, _ := StartLoop(t, dunlin.Config{Limits: dunlin.Limits{Memory: smallMemory}}, func(a *dunlin.App) {
		a.Get("/events/{n}", func(r *dunlin.Request) dunlin.Response {
			return dunlin.SSE(func(e *dunlin.Events) error { return e.Comment(r.Param("n")) })
		})
		a.Post("/body", func(r *dunlin.Request) dunlin.Response {
			var first [1]byte
			if _, err := io.ReadFull(r.Body(), first[:]); err != nil {
				return dunlin.Error(err)
			}
			waits <- struct{}{}
			n, err := io.Copy(io.Discard, r.Body())
			return dunlin.Text(fmt.Sprint(n, err))
		})
	})
	var conns []net.Conn
	for range unfinished + streams + streams*bodies {
		conn := Dial(t, addr)
		Send(t, conn, Request("GET /probe"))
		Answered(t, bufio.NewReader(conn), 200, "probe")
		conns = append(conns, conn)
	}
	part := "GET /probe HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 40<<10) // needs a buffer of 64 KiB
	for _, conn := range conns[:unfinished] {
		Send(t, conn, part)
	}
	Soon(t, "the budget is nearly used up", func() bool { return app.Stats().Memory.Held >= unfinished*64<<10 })
	for n, conn := range conns[unfinished : unfinished+streams] {
		Send(t, conn, Request(fmt.Sprint("GET /events/", n))+part)
		Answered(t, bufio.NewReader(conn), 200, fmt.Sprintf(":%d\n\n", n))
		for _, conn := range conns[unfinished+streams+n*bodies:][:bodies] {
			Send(t, conn, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx")
			Await(t, "the action", waits)
			Send(t, conn, strings.Repeat("x", 99_999))
			Answered(t, bufio.NewReader(conn), 200, "99999 <nil>")
		}
	}
	if app.Stats().Shed["largest-holder"] == 0 {
		t.Error("no request was refused")
	}
}

// Refusals for missing memory run features each time, however slow these are. They block no loop.
func TestMemoryRefusalsRunPolicies(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		if engine == dunlin.EngineStd {
			t.Skip("net/http's heads are its own: none is refused for want of memory")
		}
		const requests = 40
		observed, block := make(chan string, requests), make(chan struct{})
		release := sync.OnceFunc(func() { close(block) })
		t.Cleanup(release)
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: smallMemory}, Problems: statusErrors}, func(a *dunlin.App) {
			a.Get("/probe", Text("probe"))
			a.Install(dunlin.Hooks{Headers: stamp})
			a.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
				if info.Source() == observe.SourceMemory {
					observed <- fmt.Sprint(info.Status(), " ", info.Remote().IsValid())
					<-block
				}
			}})
		})
		part := "GET /probe HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 40<<10) // kept in 64 KiB
		var conns []net.Conn
		for range requests {
			conn := Dial(t, addr)
			Send(t, conn, Request("GET /probe"))
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(err, resp)
			}
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			Send(t, conn, part)
		}
		Soon(t, "a refusal is observed", func() bool { return len(observed) > 0 })
		for range 20 { // more than the number of loops
			resp, err := http.ReadResponse(bufio.NewReader(AskConn(t, addr, Request("GET /probe"))), nil)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("while an observer blocks: got %v, %v", resp, err)
			}
		}
		release()
		refused := 0
		for _, conn := range conns {
			_, _ = io.WriteString(conn, "\r\n\r\n") // the connection may be closed already
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := "action 200 /probe"
			if resp.StatusCode == 503 {
				refused++
				want = "memory 503"
				if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), `"status":"memory"`) {
					t.Errorf("refused by %s, %v", body, err)
				}
			}
			if got := resp.Header.Get("X-Policy"); got != want {
				t.Errorf("%d: the feature's header is %q, want %q", resp.StatusCode, got, want)
			}
		}
		for range refused {
			if got := Await(t, "a refusal is observed", observed); got != "503 true" {
				t.Errorf("observed %s", got)
			}
		}
		if refused == 0 || len(observed) != 0 {
			t.Errorf("%d refused, %d observed beyond that", refused, len(observed))
		}
	})
}
