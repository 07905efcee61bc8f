package suite

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// The time of a request lies between the start of its server and now, and advances for an action that is taken over.
func TestNow(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		began := time.Now()
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				first := ext.Now(r)
				if first.Before(began) || first.After(time.Now()) {
					t.Errorf("the request's time is %v, it was %v before and is %v", first, began, time.Now())
				}
				for ext.Now(r).Equal(first) {
					runtime.Gosched() // until another driver has the loop
				}
				mark := time.Now()
				if now := ext.Now(r); now.Before(mark) {
					t.Errorf("the request's time is %v, at %v", now, mark)
				}
				return dunlin.Text("ok")
			})
		})
		if got := Exchange(t, addr, true, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); len(got) != 1 || !strings.HasPrefix(got[0], "HTTP/1.1 200") {
			t.Errorf("answers %q", got)
		}
	})
}
