//go:build linux

package suite

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A blocked action learns that its client has disconnected. The context of a connected client does not end.
func TestContextCancelled(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		contexts := make(chan context.Context, 1)
		open := make(chan struct{})
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
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
		waiting := Dial(t, addr)
		Send(t, waiting, Request("GET /until-open"))
		alive := <-contexts
		for range 5 { // taken over at first, learned as blocking later
			for _, reset := range []bool{false, true} {
				conn := Dial(t, addr)
				Send(t, conn, Request("GET /until-gone"))
				ctx := <-contexts
				if reset {
					_ = TCP(conn).SetLinger(0)
				}
				_ = conn.Close()
				select {
				case <-ctx.Done():
				case <-time.After(Patience):
					t.Fatalf("the context lives on (client reset: %v)", reset)
				}
			}
		}
		if err := alive.Err(); err != nil {
			t.Errorf("the context of a client that waits: %v", err)
		}
		open <- struct{}{}
		Answered(t, bufio.NewReader(waiting), 200, "alive")
	})
}

// The TLS close_notify of a client that leaves its socket open ends the context of actions and of handlers. Their responses are
// still sent.
func TestContextEndsWithCloseNotify(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		running := make(chan context.Context, 1)
		addr, trusted, _ := StartTLS(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/action", func(r *dunlin.Request) dunlin.Response {
				running <- r.Context()
				<-r.Context().Done()
				return dunlin.Text("late")
			})
			app.Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				running <- r.Context()
				<-r.Context().Done()
				_, _ = io.WriteString(w, "late")
			})))
		})
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, path := range []string{"/action", "/std"} {
				for range 3 { // taken over at first, learned as blocking later
					conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: trusted, MaxVersion: version})
					if err != nil {
						t.Fatal(err)
					}
					_ = conn.SetDeadline(time.Now().Add(Patience))
					Send(t, conn, Request("GET "+path))
					ctx := Await(t, "the action", running)
					if err := ctx.Err(); err != nil {
						t.Errorf("the context of a client that waits: %v", err)
					}
					if err := conn.CloseWrite(); err != nil {
						t.Fatal(err)
					}
					Answered(t, bufio.NewReader(conn), 200, "late")
					_ = conn.Close()
				}
			}
		}
	})
}

// The next request on the connection has its own context.
func TestContextOfNextRequest(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		contexts := make(chan context.Context, 1)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
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
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		for range 3 {
			Send(t, conn, Request("GET /"))
			Answered(t, br, 200, "alive")
			select {
			case <-(<-contexts).Done():
			case <-time.After(Patience):
				t.Fatal("the context lives on after the answer")
			}
		}
	})
}

// The local address of the connection is in the context if it was requested in time.
func TestContextLocalAddr(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		kept := make(chan context.Context, 1)
		local := func(ctx context.Context) string { return fmt.Sprint(ctx.Value(http.LocalAddrContextKey)) }
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/action", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(local(r.Context())) })
			app.Get("/limited", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(local(r.Context())) }).Timeout(Patience)
			app.Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, local(r.Context()))
				kept <- r.Context()
			})))
			app.Get("/hijacked", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				defer conn.Close()
				got := local(r.Context())
				_, _ = fmt.Fprintf(rw, "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(got), got)
				_ = rw.Flush()
			})))
		})
		for _, path := range []string{"/action", "/limited", "/std", "/hijacked"} {
			conn := Dial(t, addr)
			Send(t, conn, Request("GET "+path))
			Answered(t, bufio.NewReader(conn), 200, addr)
		}
		if got := local(<-kept); got != addr {
			t.Errorf("after the request: got %s", got)
		}
	})
}
