package suite

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Memory reserved for a large response of a route is released with its purpose: a response that was flushed, lasts, or has
// become another protocol holds none of it.
func TestReservedMemoryIsReleased(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		const large = 16 << 20 // more than sockets and windows hold
		var app *dunlin.App
		begun, leave := make(chan bool, 9), make(chan bool)
		wait := func() { begun <- true; <-leave }
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: 256 << 20}}, func(a *dunlin.App) {
			app = a
			mounted := dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Query().Get("how") {
				case "hinted":
					w.WriteHeader(http.StatusEarlyHints) // it is sent, but no final response has begun
					wait()
				case "hijacked":
					if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
						wait()
						_ = c.Close()
						return
					}
					fallthrough // HTTP/2 and the memory adapter do not support hijacking
				case "flushed":
					_ = http.NewResponseController(w).Flush()
					wait()
				}
			}))
			a.Get("/", func(r *dunlin.Request) dunlin.Response {
				switch r.Query("how") {
				case "large":
					return dunlin.Text(strings.Repeat("x", large))
				case "stream":
					return dunlin.Stream("text/plain", func(w io.Writer) error {
						_, err := w.Write(make([]byte, 9000)) // enough to be sent at once
						wait()
						return err
					})
				case "events":
					return dunlin.SSE(func(e *dunlin.Events) error { e.Heartbeat(0); wait(); return nil })
				}
				return mounted(r)
			})
		})
		output := func() int64 { return app.Stats().Memory.HeldFor["output"] }
		// A client that leaves while its answer is being written does not show that it is large: another one follows.
		for try := 1; ; try++ {
			unread := Dial(t, addr)
			Send(t, unread, Request("GET /?how=large"))
			if engine == dunlin.EngineLoop {
				Soon(t, "the route shows that its answers are large", func() bool { return output() > 1<<20 })
			}
			_ = unread.Close()
			Soon(t, "nothing is held", func() bool { return output() == 0 })
			conn := Dial(t, addr)
			Send(t, conn, Request("GET /?how=hinted"))
			Await(t, "hinted", begun)
			held := output()
			_ = conn.Close()
			leave <- true
			Soon(t, "nothing is held", func() bool { return output() == 0 })
			if engine != dunlin.EngineLoop || held >= 256<<10 {
				break
			}
			if try == 10 {
				t.Fatalf("got %d bytes reserved for an answer that has not begun", held)
			}
		}
		for _, how := range []string{"flushed", "stream", "events", "hijacked"} {
			conn := Dial(t, addr)
			Send(t, conn, Request("GET /?how="+how))
			Await(t, how, begun)
			Soon(t, how+": nothing is reserved for the response", func() bool { return output() < 256<<10 })
		}
		close(leave)
	})
}
