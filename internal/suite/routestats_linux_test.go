//go:build linux

package suite

import (
	"io"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

func TestRouteStatsLearnBlocking(t *testing.T) {
	app, addr := startCounted(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/learned", Constant(dunlin.NoContent()))
		MarkBlocking(app, "/learned")
	})
	for n := range uint64(3) { // on a loop, then on workers
		if status := statusOf(t, "GET", "http://"+addr+"/learned"); status != 204 {
			t.Errorf("answered %d", status)
		}
		if s := statsOf(t, app, "/learned"); !s.Blocking || s.Requests != n+1 || s.InFlight != 0 {
			t.Errorf("got %+v", s)
		}
	}
}

func TestStatsCountUnreadableRequests(t *testing.T) {
	app, addr, _ := StartLoop(t, dunlin.Config{}, func(*dunlin.App) {})
	conn := Dial(t, addr)
	Send(t, conn, "nonsense\r\n\r\n")
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	if s := app.Stats(); s.Connections.Refused != 1 || s.Unmatched.Requests != 1 || s.Unmatched.Status.ClientError != 1 {
		t.Errorf("got %v", s)
	}
}
