package suite

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// The context of a handler ends when its client, which reads no interim responses, is cut off.
func TestInterimResponsesOfStalledClientsEnd(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(protocol, func(t *testing.T) {
				ended := make(chan struct{})
				addr, _ := Start(t, dunlin.Config{Engine: engine, H2C: dunlin.H2CPriorKnowledge, Timeouts: dunlin.Timeouts{Write: 200 * time.Millisecond}}, func(a *dunlin.App) {
					a.Mount("/hints", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						defer close(ended)
						w.Header().Set("Link", strings.Repeat("x", 8000)) // more than HPACK indexes
						for r.Context().Err() == nil {
							w.WriteHeader(http.StatusEarlyHints)
						}
					}))
				})
				conn := Dial(t, addr)
				if err := TCP(conn).SetReadBuffer(4 << 10); err != nil {
					t.Fatal(err)
				}
				if protocol == "HTTP/1.1" {
					Send(t, conn, Request("GET /hints"))
				} else {
					onH2(t, conn).get(1, "/hints")
				}
				select {
				case <-ended:
				case <-time.After(Patience):
					t.Error("the context of the handler has not ended")
				}
			})
		}
	})
}
