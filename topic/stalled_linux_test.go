package topic_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/topic"
)

// narrow limits the buffers of a socket and of connections that it accepts.
func narrow(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, 16<<10)
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 32<<10)
	})
}

// A client that does not read needs only memory for its position in the log. Other clients are served meanwhile.
func TestClientsThatDoNotRead(t *testing.T) {
	const log, few, messages = 100, 2, 1000
	clients := 500
	if invariants.Enabled {
		clients = 100
	}
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop})
	hub := topic.New(app, topic.Settings{MaxMessages: log})
	open := sockets(t, app, hub)
	ln, err := (&net.ListenConfig{Control: narrow}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = app.Serve(ln) }()
	t.Cleanup(func() { _ = app.Shutdown(t.Context()); <-served })
	x, data := hub.Topic("x"), strings.Repeat("x", 180)
	for range log {
		publish(t, x, data) // so that the log does not grow later
	}
	reader := open()
	reader.say("!subscribe - x")
	reader.position("!at")
	var stalled []*socket
	for range clients {
		s := dial(t, ln.Addr().String(), narrow)
		s.say("!subscribe - x")
		s.position("!at")
		stalled = append(stalled, s)
	}
	pass := func(n int) {
		for i := range n {
			text := fmt.Sprint(i, data)
			publish(t, x, text)
			reader.expect("x", text)
		}
	}
	pass(few)
	before := heap()
	pass(messages)
	after := heap()
	if held := app.Stats().Memory.HeldFor["output"]; held != 0 {
		t.Errorf("%d bytes are held as output", held)
	}
	t.Logf("%d bytes for %d clients that do not read", after-before, clients)
	if after-before > 64*int64(clients)+256<<10 { // a copy of their output would be 16 KB for each
		t.Errorf("%d clients that do not read cost %d bytes", clients, after-before)
	}
	for i, s := range stalled[:10] {
		resyncs, now := 0, fmt.Sprint("-", log+few+messages+i)
		for id := ""; !strings.HasSuffix(id, now); {
			var ok bool
			text := s.hear()
			if id, ok = strings.CutPrefix(text, "!resync "); ok {
				resyncs++
			} else {
				id, _, _ = strings.Cut(text, " ")
			}
		}
		if resyncs == 0 {
			t.Error("a client has missed messages and was not told")
		}
		publish(t, x, "end")
		s.expect("x", "end")
	}
}

// heap returns the size of live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
