package websocket_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/websocket"
)

// On the loop engine a message that arrives in one read is handled and answered without an allocation.
func TestNothingAllocates(t *testing.T) {
	if invariants.Enabled || runtime.GOOS != "linux" {
		t.Skip("needs the loop engine, without the checks of test builds")
	}
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop})
	o := websocket.New(websocket.Options{Message: echo})
	app.Get("/", func(r *dunlin.Request) dunlin.Response { return o.Accept(r, nil) })
	c, _ := handshake(t, server(t, app, false)())
	in, out := []byte(frame(text, "hello")+frame(ping, "x")+frame(bin, "data")), make([]byte, 7+3+6)
	allocs := testing.AllocsPerRun(200, func() {
		if _, err := c.Write(in); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.r, out); err != nil {
			t.Fatal(err)
		}
	})
	if want := "\x81\x05hello\x8a\x01x\x82\x04data"; string(out) != want {
		t.Errorf("answered %q", out)
	}
	if allocs > 0 {
		t.Errorf("%v allocations for two messages and a ping", allocs)
	}
}
