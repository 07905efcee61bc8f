//go:build linux

package dunlin

import "github.com/dunlinhttp/dunlin/internal/engine"

// LoopStats returns the counts of an app's event loops.
func LoopStats(a *App) engine.Stats { return a.loop.Engine().Stats() }

// LearnBlocking makes the route of r one that is known to block, for good.
func LearnBlocking(r *Request) {
	r.route.shared.Pace.Learn()
}
