//go:build linux

package suite

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// An action may answer before the body arrives. net/http first reads the rest of a short body.
func TestAnswerBeforeBody(t *testing.T) {
	for name, c := range framings {
		t.Run(name, func(t *testing.T) {
			_, addr, _ := StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
				app.Post("/", Constant(dunlin.Text("no").Status(http.StatusUnauthorized)))
			})
			conn := AskConn(t, addr, Request("POST /", c.head)+c.first)
			br := bufio.NewReader(conn)
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != http.StatusUnauthorized {
				t.Fatalf("got %v, %v", resp, err)
			}
			if want := name == "chunked"; resp.Close != want {
				t.Errorf("Connection: close is %v, want %v", resp.Close, want)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			if resp.Close {
				WantEnd(t, br)
				return
			}
			Send(t, conn, c.rest+Request("GET /probe"))
			if got, err := ReadAnswer(br, "GET"); got != Plain("probe") {
				t.Errorf("the next request: got %q, %v", got, err)
			}
		})
	}
}

// Slow clients occupy only their share of the goroutines that MaxConcurrent allows. Their further bodies are buffered and
// handled when complete.
func TestEarlyActionsAreBounded(t *testing.T) {
	const clients = 8
	var running, most atomic.Int32
	begun := make(chan struct{}, clients)
	_, addr, _ := StartLoop(t, dunlin.Config{Limits: dunlin.Limits{MaxConcurrent: 8}}, func(app *dunlin.App) { // 2 of them
		app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			begun <- struct{}{}
			b, err := io.ReadAll(r.Body)
			running.Add(-1)
			_, _ = fmt.Fprintf(w, "%q %v", b, err)
		}))
	})
	c := framings["length"]
	var rests []func()
	for range clients {
		conn := AskConn(t, addr, Request("POST /", c.head)+c.first)
		rests = append(rests, func() {
			Send(t, conn, c.rest)
			if got, err := ReadAnswer(bufio.NewReader(conn), "POST"); err != nil || !strings.HasSuffix(got, `"one\ntwo\n" <nil>`) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	Await(t, "the first", begun)
	Await(t, "the second", begun)
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; { // more actions would start now without the bound
		Exchange(t, addr, false, Request("GET /probe"))
	}
	if n := most.Load(); n != 2 {
		t.Errorf("%d actions wait for small bodies, want 2", n)
	}
	for _, rest := range rests {
		rest()
	}
}

// A short body that is refused while it is buffered does not start the action afterwards.
func TestRefusedBodySkipsAction(t *testing.T) {
	_, addr, _ := StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			if b, err := io.ReadAll(r.Body()); err == nil {
				t.Errorf("the body is %q", b)
			}
			return dunlin.Text("").Status(http.StatusBadRequest)
		})
	})
	for range 20 {
		conn := AskConn(t, addr, Request("POST /", "Transfer-Encoding: chunked", "", "3\r\na"))
		Send(t, conn, "bcX")
		br := bufio.NewReader(conn)
		if got, err := ReadAnswer(br, "POST"); err != nil || !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("got %q, %v", got, err)
		}
		WantEnd(t, br) // the server lingers
	}
}
