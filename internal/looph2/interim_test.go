package looph2_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Interim answers that a client does not read block the handler that makes them, and do not fill the memory. All of them
// arrive.
func TestInterimAnswersWaitForTheirClient(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		const all, size, most = 4000, 4 << 10, 2800 // the size that sockets take, and more
		var sent atomic.Int64
		s := startH2(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Write: time.Hour}}, func(app *dunlin.App) {
			app.HandleStd("GET", "/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", strings.Repeat("x", size))
				for range all {
					w.WriteHeader(http.StatusEarlyHints)
					sent.Add(1)
				}
			}))
		})
		c := newH2Conn(t, s.addr)
		c.request(1, true, "GET", "/")
		for limit := time.Now().Add(500 * time.Millisecond); time.Now().Before(limit) && sent.Load() < all; <-time.After(time.Millisecond) {
		}
		if n := sent.Load(); n == 0 || n > most {
			t.Errorf("%d were made of which nothing was taken, want at most %d", n, most)
		}
		heads := 0
		for heads < all+1 {
			if kind, _, _, _ := c.read(); kind == frameHeaders {
				heads++
			}
		}
	})
}
