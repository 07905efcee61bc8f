package suite

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Requests for small responses of a route are answered though clients have requested large ones of it, which they never finish
// reading.
func TestSmallResponsesDoNotWaitForLargeOnes(t *testing.T) {
	const clients, small = 60, 20 << 10
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, path := range []string{"/native", "/mounted"} {
			t.Run(path[1:], func(t *testing.T) {
				var app *dunlin.App
				var begun atomic.Int64 // large responses that have begun
				size := func(query string) int {
					n, _ := strconv.Atoi(query)
					if n > small {
						begun.Add(1)
					}
					return n
				}
				addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: 24 << 20, QueueTarget: -1}}, func(a *dunlin.App) {
					app = a
					a.Get("/native", func(r *dunlin.Request) dunlin.Response {
						return dunlin.Bytes("", bytes.Repeat([]byte("x"), size(r.Query("n"))))
					})
					a.Mount("/mounted", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						q, _ := url.ParseQuery(r.URL.RawQuery)
						_, _ = w.Write(bytes.Repeat([]byte("x"), size(q.Get("n"))))
					}))
				})
				slow := func() {
					conn := Dial(t, addr)
					if err := TCP(conn).SetReadBuffer(4 << 10); err != nil {
						t.Fatal(err)
					}
					Send(t, conn, Request(fmt.Sprintf("GET %s?n=%d", path, slowAnswer)))
				}
				slow() // the route's sizes are known now
				Soon(t, "the first has begun", func() bool { return begun.Load() == 1 })
				for range clients - 1 {
					slow()
				}
				Soon(t, "all have begun, or wait", func() bool {
					s := app.Stats()
					gone := int(s.Shed["largest-holder"] + s.Shed["no-memory"])
					return max(s.Memory.Holders+gone, int(begun.Load())+s.Memory.Waiting) >= clients
				})
				conn := Dial(t, addr)
				Send(t, conn, Request(fmt.Sprintf("GET %s?n=%d", path, small)))
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				if err != nil || resp.StatusCode != 200 || n != small {
					t.Fatalf("%d with %d bytes: %v", resp.StatusCode, n, err)
				}
				// The same holds for a response without a body, though its GET has a large one.
				conn = Dial(t, addr)
				Send(t, conn, Request(fmt.Sprintf("HEAD %s?n=%d", path, slowAnswer)))
				if resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "HEAD"}); err != nil || resp.StatusCode != 200 {
					t.Errorf("HEAD: got %v, %v", resp, err)
				}
				// The peak includes holders that are being evicted: each loop closes its own, after the request that it serves.
				// They hold at most the budget. One write of a mounted handler is in the program's memory before the server
				// holds it.
				if m := app.Stats().Memory; path == "/native" && m.HeldPeak > 2*m.Budget+2*slowAnswer {
					t.Errorf("%d bytes were held of %d, and %d at once", m.HeldPeak, m.Budget, begun.Load())
				}
			})
		}
	})
}
