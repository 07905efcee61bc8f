//go:build linux

package dunlin

import (
	"math"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// LoopStats returns the counts of an app's event loops.
func LoopStats(a *App) engine.Stats { return a.loop.engine.Stats() }

// LearnBlocking makes the route of r one that is known to block, for good.
func LearnBlocking(r *Request) {
	r.route.pace.trial.Store(math.MaxInt64)
	r.route.pace.score.Store(mostScore)
}
