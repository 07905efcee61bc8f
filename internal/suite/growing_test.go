package suite

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Bodies of unknown length that arrive at the same time and together exceed the memory budget are read one after the other.
// Otherwise each would hold a part of its memory and wait for the rest until it is refused.
func TestGrowingBodiesDoNotDeadlock(t *testing.T) {
	const clients, size, piece = 8, 3 << 19, 64 << 10
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: 48 << 20, MaxBody: 2 << 20}}, func(a *dunlin.App) {
			app = a
			a.Post("/length", length)
		})
		chunk := fmt.Sprintf("%x\r\n%s\r\n", piece, strings.Repeat("x", piece))
		begun, crowded := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		for range clients {
			conn := Dial(t, addr)
			all.Go(func() {
				send := func(s string, times int) {
					_, _ = io.WriteString(conn, strings.Repeat(s, times)) // a refusal is read below
				}
				send("POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 1)
				send(chunk, 1)
				<-begun // the clients' shares depend on their number
				send(chunk, size/piece-2)
				<-crowded // no body can end before
				send(chunk, 1)
				send("0\r\n\r\n", 1)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != fmt.Sprint(size) {
					t.Errorf("answered with %s: %.200q, %v", resp.Status, body, err)
				}
			})
		}
		Soon(t, "all hold something", func() bool { return app.Stats().Memory.Holders >= clients })
		close(begun)
		Soon(t, "some wait for room", func() bool { return app.Stats().Memory.Waiting >= 3 })
		close(crowded)
		all.Wait()
	})
}

// If more large bodies arrive on one HTTP/2 connection than memory permits, they get memory one after the other. The waiting
// ones do not close the connection's window for the others.
func TestLargeBodiesOfOneConnectionTakeTurns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are event loops on Linux only")
	}
	const streams, size = 6, 500 << 10
	addr, _ := Start(t, dunlin.Config{Engine: dunlin.EngineLoop, H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{Memory: smallMemory}}, func(a *dunlin.App) {
		a.Post("/length", length)
	})
	client := Client(t, nil, H2C)
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			resp, err := client.Post("http://"+addr+"/length", "", strings.NewReader(strings.Repeat("x", size)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); string(got) != fmt.Sprint(size) {
				t.Errorf("%s: got %q, %v", resp.Status, got, err)
			}
		})
	}
	all.Wait()
}

// A client finishes its body of unknown length while the body waits for memory. The wait ends.
func TestEndOfWaitingChunkedBody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are event loops on Linux only")
	}
	h := startHolding(t, dunlin.EngineLoop, 600<<10)
	second := Dial(t, h.addr)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 82<<10, strings.Repeat("x", 82<<10))
	Send(t, second, "POST /hold HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk+chunk) // socket buffers are small
	Soon(t, "the second waits", func() bool { return h.app.Stats().Memory.Waiting == 1 })
	if err := TCP(second).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := Await(t, "the end of the wait", h.failed); !strings.Contains(err.Error(), "closed during the request body") {
		t.Errorf("reading the body: %v", err)
	}
	if s := h.app.Stats(); s.Memory.Waiting != 0 || s.Memory.Refused != 0 {
		t.Errorf("got %+v", s.Memory)
	}
}

func length(r *dunlin.Request) dunlin.Response {
	body, err := r.Bytes()
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Text(fmt.Sprint(len(body)))
}
