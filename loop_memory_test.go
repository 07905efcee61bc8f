//go:build linux

package dunlin_test

import (
	"net"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A client that asks for much at once and reads nothing makes the server hold one
// answer, not all of them.
func TestPipeliningWithoutReadingPendsOneAnswer(t *testing.T) {
	const answer, asked = 8 << 20, 10
	big := strings.Repeat("x", answer)
	app, addr, _ := startLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/big", func(*dunlin.Request) dunlin.Response { return dunlin.Text(big) })
	})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(strings.Repeat(req("GET /big"), asked))); err != nil {
		t.Fatal(err)
	}
	soon(t, "output is pending", func() bool { return app.Stats().Memory.Pending > 0 })
	if pending := app.Stats().Memory.Pending; pending > answer+1<<20 {
		t.Errorf("%d bytes pending, want at most the %d of one answer", pending, answer)
	}
	conn.Close()
	soon(t, "nothing is pending", func() bool { return app.Stats().Memory.Pending == 0 })
}
