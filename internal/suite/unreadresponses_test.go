package suite

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Large responses of mounted standard handlers to clients that do not read, over HTTP/1.1 and on streams with closed windows,
// stay within the memory budget. Other clients are served meanwhile.
func TestUnreadResponsesOfHandlers(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for path, piece := range map[string]int{"/whole": 1 << 20, "/pieces": 4000} {
			t.Run(path[1:], func(t *testing.T) {
				var app *dunlin.App
				addr, _ := Start(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Engine: engine, Limits: dunlin.Limits{Memory: 24 << 20}}, func(a *dunlin.App) {
					app = a
					a.Get("/quick", Text("quick"))
					a.Mount(path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						text := bytes.Repeat([]byte("x"), piece)
						for n := 0; n < 1<<20; n += piece {
							if _, err := w.Write(text); err != nil {
								return
							}
						}
					}))
				})
				const conns, streams, old = 4, 25, 40
				for range conns {
					c := dialH2(t, addr)
					go func() { _, _ = io.Copy(io.Discard, c) }() // reads the heads, which need no window
					for i := range streams {
						c.get(uint32(2*i+1), path)
					}
				}
				for range old {
					c := AskConn(t, addr, Request("GET "+path))
					if err := TCP(c).SetReadBuffer(4 << 10); err != nil {
						t.Fatal(err)
					}
				}
				loop := app.Stats().Connections.PerLoop != nil
				Soon(t, "many have begun, or wait, or were refused or cut off", func() bool {
					s := app.Stats()
					return s.Actions.InFlight+s.Memory.Waiting+int(s.Shed["largest-holder"]+s.Shed["no-memory"]+s.Shed["queue-time"]) >= streams
				})
				h2, scheme := h2Client(t)
				for range 10 {
					resp, err := h2.Get(scheme + addr + "/quick")
					if err != nil {
						t.Fatal(err)
					}
					text, err := io.ReadAll(resp.Body)
					if _ = resp.Body.Close(); err != nil || string(text) != "quick" {
						t.Errorf("by HTTP/2: got %d, %q, %v", resp.StatusCode, text, err)
					}
					c := AskConn(t, addr, Request("GET /quick"))
					got, err := ReadAnswer(bufio.NewReader(c), "GET")
					if _ = c.Close(); err != nil || !strings.HasSuffix(got, "quick") {
						t.Errorf("by HTTP/1.1: got %q, %v", got, err)
					}
				}
				if loop {
					Soon(t, "the budget is kept", func() bool {
						m := app.Stats().Memory
						return m.Held-m.HeldFor["cache"] <= m.Budget+m.Budget/8
					})
				}
			})
		}
	})
}
