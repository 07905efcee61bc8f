//go:build linux

package suite

import (
	"testing"

	"github.com/dunlinhttp/dunlin"
)

func TestMaxConnectionsPerLoop(t *testing.T) {
	app, addr := startProbe(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxConnectionsPerLoop: 2}})
	loops := len(app.Stats().Connections.PerLoop)
	for range 2 * loops {
		probe(t, Dial(t, addr))
	}
	for range 3 {
		wantRefused(t, Dial(t, addr), "the server has as many connections as it takes")
	}
	s := app.Stats()
	if n := s.Shed["loop-limit"]; n != 3 || s.Connections.Open != 2*loops {
		t.Errorf("%d refused, %d open; want 3 and %d", n, s.Connections.Open, 2*loops)
	}
}
