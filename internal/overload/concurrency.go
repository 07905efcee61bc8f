package overload

import (
	"math"
	"time"
)

// A Concurrency is a bound on what runs at once that finds its own value from how long
// things take: as long as they take no longer than they used to, more may run;
// when they take longer, they wait for each other, and fewer run sooner. It is
// the idea of TCP Vegas (L. Brakmo and L. Peterson, 1995) as Netflix's
// concurrency-limits apply it to requests ("Gradient2"):
//
//	gradient = what is usual / what is seen now, between ½ and 1
//	limit    = limit × gradient + room for some to wait
//
// What is usual follows what is seen when that is faster. Whether it has become
// slower, and not just many, can only be seen when few run: now and then, while the limit is
// kept down, it is lowered to the least for a moment. Things of very different length
// make it blind. Its methods must not be called at once.
type Concurrency struct {
	least, most float64
	limit       float64
	usual       float64 // ns
	down        int     // windows since the last probe in which the limit was kept down
	after       float64 // the limit after the present probe, 0: there is none
	window      struct {
		sum     float64 // ns
		n       int
		highest int // how many ran at once
	}
}

const (
	// tolerance is how much longer than usual things may take: noise.
	tolerance = 1.5
	// usualSteps is over how many windows the usual is averaged.
	usualSteps = 20
	// probeEvery is how many windows the limit is kept down between probes.
	probeEvery = 300
	// smoothing is how much of a step is taken at once.
	smoothing = 0.2
	// windowSize is how many things are looked at together, at least.
	windowSize = 20
)

// NewConcurrency returns a bound that moves between least and most, and begins in
// between.
func NewConcurrency(least, most int) *Concurrency {
	least = min(least, most)
	return &Concurrency{least: float64(least), most: float64(most), limit: math.Sqrt(float64(least) * float64(most))}
}

// Limit returns how many may run at once.
func (g *Concurrency) Limit() int { return int(g.limit) }

// Note takes in that one of running has ended, and how long it took.
func (g *Concurrency) Note(took time.Duration, running int) {
	w := &g.window
	if g.after > 0 && running > int(g.limit) {
		return // from before the probe
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
		return // a bound that nobody comes near says nothing
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
