//go:build linux

package dunlin_test

import (
	"io"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

func TestRouteStatsLearnBlocking(t *testing.T) {
	app, addr := startCounted(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/learned", func(r *dunlin.Request) dunlin.Response {
			dunlin.LearnBlocking(r)
			return dunlin.NoContent()
		})
	})
	for n := range uint64(3) { // on a loop, then on workers
		if status := statusOf(t, "GET", "http://"+addr+"/learned"); status != 204 {
			t.Errorf("answered %d", status)
		}
		if s := statsOf(t, app, "/learned"); !s.Blocking || s.Requests != n+1 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	}
}

func TestStatsCountUnreadableRequests(t *testing.T) {
	app, addr, _ := startLoop(t, dunlin.Config{}, func(*dunlin.App) {})
	conn := dial(t, addr)
	send(t, conn, "nonsense\r\n\r\n")
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	if s := app.Stats(); s.Connections.Refused != 1 || s.Unmatched.Requests != 0 {
		t.Errorf("%v", s)
	}
}
