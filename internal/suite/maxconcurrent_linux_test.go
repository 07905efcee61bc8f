//go:build linux

package suite

import (
	"bufio"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// MaxConcurrent also bounds a route that rarely blocks: nine of ten calls here do not.
func TestMaxConcurrentOfRarelyBlockingRoute(t *testing.T) {
	const bound, calls = 8, 60
	const most = bound + 1 // see Config.Limits.MaxConcurrent: one blocked call stays on its loop
	var blocked atomic.Int32
	begun, free := make(chan error, calls), make(chan struct{})
	app, addr, _ := StartLoop(t, dunlin.Config{Limits: dunlin.Limits{MaxConcurrent: bound, QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			if r.Query("block") != "" {
				blocked.Add(1)
				begun <- nil
				<-free
			}
			return dunlin.Text("done")
		})
	})
	defer close(free)
	inLine := func() bool { return app.Stats().Actions.Queued > 0 }
	// await waits for a value from c, or for a queued request.
	await := func(what string, c <-chan error) {
		t.Helper()
		for limit := time.Now().Add(Patience); !inLine(); {
			select {
			case err := <-c:
				if err != nil {
					t.Fatal(err)
				}
				return
			case <-time.After(time.Millisecond):
			}
			if time.Now().After(limit) {
				t.Fatalf("%s, and nothing waits in line: got %+v", what, app.Stats().Actions)
			}
		}
	}
	quick := func(n int) { // sequentially
		t.Helper()
		answers := make(chan error, 1)
		conn := Dial(t, addr)
		go func() {
			br := bufio.NewReader(conn)
			for range n {
				if _, err := io.WriteString(conn, Request("GET /")); err != nil {
					answers <- err
					return
				}
				if _, err := ReadAnswer(br, "GET"); err != nil {
					answers <- err
					return
				}
			}
			answers <- nil
		}()
		await("quick calls are not answered", answers)
	}
	quick(1000)
	for n := 0; n < calls && !inLine(); n++ {
		AskConn(t, addr, Request("GET /?block=1"))
		await("a call does not begin", begun)
		quick(9)
	}
	if got := blocked.Load(); got > most || !inLine() {
		t.Errorf("%d calls wait, of at most %d", got, most)
	}
}
