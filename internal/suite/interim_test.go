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
						w.Header().Set("Link", strings.Repeat("x", 4000))
						for r.Context().Err() == nil {
							w.WriteHeader(http.StatusEarlyHints)
						}
					}))
				})
				if protocol == "HTTP/1.1" {
					c := Dial(t, addr)
					if err := TCP(c).SetReadBuffer(4 << 10); err != nil {
						t.Fatal(err)
					}
					Send(t, c, Request("GET /hints"))
				} else {
					dialH2(t, addr).get(1, "/hints")
				}
				select {
				case <-ended:
				case <-time.After(3 * Patience): // net/http takes seconds to end a context on a busy machine
					t.Error("the handler goes on")
				}
			})
		}
	})
}
