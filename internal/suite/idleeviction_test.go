package suite

import (
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// At MaxConnections idle connections are evicted for new ones.
func TestIdleConnectionsAreEvicted(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		_, addr := startProbe(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxConnections: 3}})
		for range 3 {
			probe(t, Dial(t, addr))
		}
		probe(t, Dial(t, addr))
	})
}

// At MaxConnections connections whose clients stop within a request head are evicted for new ones.
func TestIncompleteHeadsAreEvicted(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startProbe(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxConnections: 3}})
		for range 3 {
			Send(t, Dial(t, addr), "GET /probe HT")
		}
		probe(t, Dial(t, addr))
		if n := app.Stats().Shed["slow-head"]; n == 0 {
			t.Error("not counted")
		}
	})
}
