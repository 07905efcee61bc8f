package suite

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Libraries use type assertions on the ResponseWriter to detect the capabilities of the connection. Over HTTP/2 it is not an
// http.Hijacker, and implements all other interfaces of net/http's writer.
func TestWriterIsNoHijackerByHTTP2(t *testing.T) {
	for _, adapter := range Adapters {
		if adapter.Memory {
			continue // there are no deadlines in memory
		}
		adapter.On(t, func(t *testing.T, engine dunlin.Engine) { writerIsNoHijackerByHTTP2(t, engine) })
	}
}

func writerIsNoHijackerByHTTP2(t *testing.T, engine dunlin.Engine) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, hijacks := w.(http.Hijacker)
		_, flushes := w.(http.Flusher)
		_, notifies := w.(closeNotifier)
		_, texts := w.(io.StringWriter)
		c := http.NewResponseController(w)
		set := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{}), c.EnableFullDuplex())
		if r.ProtoMajor == 2 {
			if conn, _, err := c.Hijack(); err == nil || !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("Hijack: got %v, %v", conn, err)
			}
		}
		_, _ = fmt.Fprint(w, hijacks == (r.ProtoMajor == 1), flushes, notifies, texts, set)
	})
	pass := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, hijacks := w.(http.Hijacker); hijacks != (r.ProtoMajor == 1) {
				t.Errorf("HTTP/%d: that of middleware hijacks: got %v", r.ProtoMajor, hijacks)
			}
			next.ServeHTTP(w, r)
		})
	}
	around := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response { return next(r) }
	}
	addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
		app.Mount("/mounted", answer)
		app.Get("/around", dunlin.FromStd(answer), around)
		std := app.Group("/behind")
		std.UseStd(pass, pass)
		std.HandleStd("GET", "/std", answer)
		std.Get("/twice", dunlin.FromStd(pass(answer)), around)
	})
	for _, path := range []string{"/mounted", "/around", "/behind/std", "/behind/twice"} {
		if got := Exchange(t, addr, true, Request("GET "+path, "Connection: close"))[0]; got[9:12] != "200" || got[len(got)-len("true true true true <nil>"):] != "true true true true <nil>" {
			t.Errorf("%s: got %q", path, got)
		}
	}
}
