package suite

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// When a Write fails because the client has disconnected, the context of the request has ended already: libraries read the
// reason from it. The same holds for writes that fail because of a deadline.
func TestContextIsCanceledBeforeWriteFails(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		type outcome struct{ write, context error }
		failed := make(chan outcome, 1)
		piece := strings.Repeat("x", 20_000)
		writes := func(w io.Writer, err func() error) {
			for {
				if _, failure := io.WriteString(w, piece); failure != nil {
					failed <- outcome{failure, err()}
					return
				}
			}
		}
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writes(w, r.Context().Err) }))
			app.Mount("/flushes", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				for {
					_, err := io.WriteString(w, "x")
					if err == nil {
						err = c.Flush()
					}
					if err != nil {
						failed <- outcome{err, r.Context().Err()}
						return
					}
				}
			}))
			app.Mount("/deadline", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
					failed <- outcome{} // there are none in memory
					return
				}
				writes(w, r.Context().Err)
			}))
			app.Mount("/behind", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writes(w, r.Context().Err) }),
				func(next dunlin.Action) dunlin.Action {
					return func(r *dunlin.Request) dunlin.Response { return next(r) }
				})
			app.Get("/stream", func(r *dunlin.Request) dunlin.Response {
				ctx := r.Context()
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					writes(w, ctx.Err)
					return nil
				})
			})
			app.Get("/late", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					writes(w, func() error { return r.Context().Err() }) // called after the connection has closed
					return nil
				})
			})
		})
		for _, path := range []string{"/std", "/flushes", "/deadline", "/behind", "/stream", "/late"} {
			for range 5 {
				conn := Dial(t, addr)
				Send(t, conn, Request("GET "+path))
				if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				if path != "/deadline" {
					_ = conn.Close()
				}
				got := Await(t, "a write that fails", failed)
				if got.write != nil && got.context == nil {
					t.Errorf("%s: got %v, and the context has not ended", path, got.write)
				}
				_ = conn.Close()
			}
		}
	})
}
