package suite

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Event streams are charged about the memory they use, also while they are quiet, and release it at their end.
func TestQuietStreamsAreCharged(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		if engine != dunlin.EngineLoop {
			t.Skip("net/http counts no goroutines")
		}
		app, addr, _ := StartLoop(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			app.Get("/", func(*dunlin.Request) dunlin.Response {
				return dunlin.SSE(func(e *dunlin.Events) error { <-e.Done(); return nil })
			})
			app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
		})
		const streams = 20
		for i, path := range []string{"/", "/std/"} {
			for range streams {
				AskConn(t, addr, Request("GET "+path))
			}
			Soon(t, path+" is charged", func() bool { return app.Stats().Memory.Held >= int64(i+1)*streams*exchange.BackgroundCost })
		}
	})
}
