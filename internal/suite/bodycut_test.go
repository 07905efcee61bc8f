package suite

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A body that came too slowly has ended for who reads it: what comes afterwards does not look as if nothing were missing.
func TestBodyThatIsCutStaysCut(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		const size = 1 << 40
		again := make(chan string, 1)
		read := func(body io.Reader) {
			_, err := io.Copy(io.Discard, body)
			n, then := body.Read(make([]byte, 100))
			again <- fmt.Sprint(dunlin.Error(err).StatusCode(), " ", n, " ", then != nil)
		}
		config := dunlin.Config{Engine: engine, BodyTimeout: 50 * time.Millisecond, MinBodyRate: 1 << 30, MaxBody: size}
		addr, _ := Start(t, config, func(app *dunlin.App) {
			app.Post("/own", func(r *dunlin.Request) dunlin.Response {
				read(r.Body())
				return dunlin.Text("read")
			})
			app.Post("/std", dunlin.FromStd(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { read(r.Body) })))
		})
		for _, path := range []string{"/own", "/std"} {
			conn := Dial(t, addr)
			Send(t, conn, Request("POST "+path, fmt.Sprintf("Content-Length: %d", int64(size))))
			sent := make(chan struct{})
			go func() { // small pieces, so that there is more to come all the time
				defer close(sent)
				for {
					if _, err := io.WriteString(conn, strings.Repeat("x", 100)); err != nil {
						return
					}
				}
			}()
			if got := Await(t, "the second read", again); got != "408 0 true" {
				t.Errorf("%s: %q, want 408, then nothing but an error", path, got)
			}
			_ = conn.Close()
			<-sent
		}
	})
}
