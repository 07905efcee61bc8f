package looph2_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Large answers that nobody takes do not fill the memory: actions that would make more of them are not begun until
// there is room, and those that take nothing make it in the end.
func TestLargeAnswersWaitForRoom(t *testing.T) {
	onLoop(t)
	const size = 1 << 20
	var made atomic.Int64
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, MemoryLimit: 64 << 20, QueueTarget: -1}, func(app *dunlin.App) {
		app.Get("/large", func(*dunlin.Request) dunlin.Response {
			made.Add(1)
			return dunlin.Bytes("", bytes.Repeat([]byte("x"), size))
		})
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
	})
	most := s.app.Stats().Memory.Budget / size
	if most < 2 || most > 40 {
		t.Fatalf("room for %d answers", most)
	}
	status, body := s.get("/large")
	want(t, status, body[:10], 200, "xxx") // the route is known from here on
	made.Store(0)
	const clients = 60
	for range clients {
		c := s.open() // takes what the windows let out, and opens none
		c.request(1, true, "GET", "/large")
	}
	soon(t, "requests wait", func() bool { return s.app.Stats().Memory.Waiting > 0 })
	if n := made.Load(); n > most+1 {
		t.Errorf("%d answers were made, with room for %d", n, most)
	}
	for range 5 {
		status, body := s.get("/quick")
		want(t, status, body, 200, "quick")
	}
	if m := s.app.Stats().Memory; m.Held > m.Budget+m.Budget/8+m.Ending {
		t.Errorf("%d bytes are held of %d, %d of them ending", m.Held, m.Budget, m.Ending)
	}
	status, body = s.get("/large") // who takes it gets it
	if status != 200 || len(body) != size {
		t.Errorf("%d with %d bytes", status, len(body))
	}
}
