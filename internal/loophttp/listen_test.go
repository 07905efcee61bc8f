//go:build linux

package loophttp_test

import (
	"bufio"
	"net"
	"path/filepath"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// One app serves several listeners of all kinds with one set of loops, and knows its peers.
func TestLoopListeners(t *testing.T) {
	app, _ := suite.NewApp(dunlin.Config{Engine: dunlin.EngineLoop})
	app.Get("/peer", func(r *dunlin.Request) dunlin.Response {
		if !r.Remote().IsValid() {
			return dunlin.Text("nobody")
		}
		return dunlin.Text(r.Remote().String())
	})
	type place struct{ network, addr string }
	var peers []place
	served := make(chan error, 10)
	for _, c := range []place{
		{"tcp", "127.0.0.1:0"}, {"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"tcp", "[::]:0"}, {"unix", filepath.Join(t.TempDir(), "s")},
	} {
		ln, err := net.Listen(c.network, c.addr)
		if err != nil && c.addr[0] == '[' {
			t.Logf("no IPv6 here: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, place{c.network, ln.Addr().String()})
		go func() { served <- app.Serve(ln) }()
	}
	for _, c := range peers {
		conn, err := net.Dial(c.network, c.addr)
		if err != nil {
			t.Fatal(err)
		}
		want := "nobody"
		if c.network == "tcp" {
			want = conn.LocalAddr().String()
		}
		br := bufio.NewReader(conn)
		for range 2 {
			suite.Send(t, conn, suite.Request("GET /peer"))
			suite.Answered(t, br, 200, want)
		}
		_ = conn.Close()
	}
	if err := app.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	for range peers {
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// Connections are distributed over all loops.
func TestLoopSpread(t *testing.T) {
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(*dunlin.App) {})
	const conns = 64
	for range conns {
		conn := suite.Dial(t, addr)
		suite.Send(t, conn, suite.Request("GET /probe"))
		suite.Answered(t, bufio.NewReader(conn), 200, "probe")
	}
	per := app.Stats().Connections.PerLoop
	for _, n := range per {
		if fair := conns / len(per); n < fair-fair/4-2 || n > fair+fair/4+2 {
			t.Errorf("%v connections per loop", per)
		}
	}
}
