//go:build linux

package dunlin_test

import (
	"bufio"
	"context"
	"net"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A blocked action learns that its client has gone, and never so of one that
// waits.
func TestContextCancelled(t *testing.T) {
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		contexts := make(chan context.Context, 1)
		open := make(chan struct{})
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/until-gone", func(r *dunlin.Request) dunlin.Response {
				contexts <- r.Context()
				<-r.Context().Done()
				return dunlin.NoContent()
			})
			app.Get("/until-open", func(r *dunlin.Request) dunlin.Response {
				ctx := r.Context()
				contexts <- ctx
				<-open
				if err := ctx.Err(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("alive")
			})
		})
		waiting := dial(t, addr)
		send(t, waiting, req("GET /until-open"))
		alive := <-contexts
		for range 5 { // taken over at first, learned as blocking then
			for _, reset := range []bool{false, true} {
				conn := dial(t, addr)
				send(t, conn, req("GET /until-gone"))
				ctx := <-contexts
				if reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				}
				_ = conn.Close()
				select {
				case <-ctx.Done():
				case <-time.After(patience):
					t.Fatalf("the context lives on (client reset: %v)", reset)
				}
			}
		}
		if err := alive.Err(); err != nil {
			t.Errorf("the context of a client that waits: %v", err)
		}
		open <- struct{}{}
		answered(t, bufio.NewReader(waiting), 200, "alive")
	})
}

// The next request on the connection has a context of its own.
func TestContextOfNextRequest(t *testing.T) {
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		contexts := make(chan context.Context, 1)
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", text("probe"))
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				contexts <- r.Context()
				if r.Context() != r.Context() {
					return dunlin.Text("two contexts")
				}
				if err := r.Context().Err(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("alive")
			})
		})
		conn := dial(t, addr)
		br := bufio.NewReader(conn)
		for range 3 {
			send(t, conn, req("GET /"))
			answered(t, br, 200, "alive")
			select {
			case <-(<-contexts).Done():
			case <-time.After(patience):
				t.Fatal("the context lives on after the answer")
			}
		}
	})
}
