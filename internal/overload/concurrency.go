package overload

import (
	"math"
	"time"
)

// A Concurrency limits the number of concurrent actions, and finds the limit from their durations. While durations
// stay at their usual value, the limit grows. If they increase, actions wait for each other, and the limit falls.
// It follows TCP Vegas (L. Brakmo and L. Peterson, 1995) in the form that Netflix's concurrency-limits uses for requests
// ("Gradient2"):
//
//	gradient = usual duration / current duration, between ½ and 1
//	limit    = limit × gradient + room for some to wait
//
// The usual duration falls when current durations are lower. It may also rise for reasons other than concurrency, which
// shows only at low concurrency. So from time to time, while the limit is held low, a probe lowers the limit to the minimum
// for a moment, and the durations of that time become the usual ones. Actions of very different durations make the estimate
// useless. The methods must not be called concurrently.
type Concurrency struct {
	least, most float64
	limit       float64
	usual       float64 // usual duration, in ns
	down        int     // windows since the last probe in which the limit was held low
	after       float64 // the limit after the current probe; 0 without a probe
	window      struct {
		sum     float64 // in ns
		n       int
		highest int // maximum number running at once
	}
}

const (
	// tolerance is the ratio of a duration to the usual duration up to which an increase counts as noise.
	tolerance = 1.5
	// usualSteps is the number of windows over which the usual duration is averaged.
	usualSteps = 20
	// probeEvery is the number of windows with a low limit between probes.
	probeEvery = 300
	// smoothing is the part of a change of the limit that is applied after each window.
	smoothing = 0.2
	// windowSize is the minimum number of durations in a window.
	windowSize = 20
)

// NewConcurrency returns a limit between least and most. It begins at their geometric mean.
func NewConcurrency(least, most int) *Concurrency {
	least = min(least, most)
	return &Concurrency{least: float64(least), most: float64(most), limit: math.Sqrt(float64(least) * float64(most))}
}

// Limit returns the maximum number of concurrent actions.
func (g *Concurrency) Limit() int { return int(g.limit) }

// Note records that an action has ended after the time took, when the given number of actions were running.
func (g *Concurrency) Note(took time.Duration, running int) {
	w := &g.window
	if g.after > 0 && running > int(g.limit) {
		return // the action began before the probe
	}
	w.sum += float64(took)
	w.n++
	w.highest = max(w.highest, running)
	if w.n < windowSize || float64(w.n) < g.limit/2 {
		return
	}
	now := max(w.sum/float64(w.n), 1)
	used := float64(w.highest) >= g.limit/2
	w.sum, w.n, w.highest = 0, 0, 0
	if g.usual == 0 || g.after > 0 {
		g.usual = now
	}
	if g.after > 0 {
		g.limit, g.after = g.after, 0
		return
	}
	if now < g.usual || !used {
		g.usual += (now - g.usual) / usualSteps
	}
	if !used {
		return // durations below half of the limit say nothing about the limit
	}
	gradient := min(max(tolerance*g.usual/now, 0.5), 1)
	if gradient < 1 {
		g.down++
	}
	if g.down > probeEvery {
		g.down, g.after, g.limit = 0, g.limit, g.least
		return
	}
	next := g.limit*gradient + math.Sqrt(g.limit)
	g.limit += (next - g.limit) * smoothing
	g.limit = min(max(g.limit, g.least), g.most)
}
