package exchange

import (
	"math"
	"sync/atomic"
	"time"
)

// A BlockingStat records whether the action of a route runs on the event loop, or blocks so often that workers should run it.
//
//	inline ──(waits repeatedly)──▶ blocking
//	inline ◀──(does not wait, several trials in a row)── blocking
//
// A call has waited if its loop was taken over or was blocked, however briefly. On the loop, such a call adds waitPenalty to
// the score and any other call subtracts 1. So a route is learned as blocking if more than about one call in waitPenalty
// waits. After many calls without waiting, only samples of them are watched.
//
// The duration of a call on a worker is not used, because workers compete for the processors and delay each other's
// computations. Therefore, from time to time one call is tried on the loop. A failed trial briefly blocks the loop, so the
// time between trials doubles with each failed trial.
//
// A route has a second BlockingStat for producing its streamed responses. There, leaving the loop, by a takeover or
// voluntarily, counts as blocking.
type BlockingStat struct {
	score atomic.Int32 // positive after calls that waited, negative after many calls that did not wait; at least minScore
	wait  atomic.Int64 // time between trials, in nanoseconds
	trial atomic.Int64 // time of the next trial, on the engine's clock
	taken atomic.Bool  // a call has waited or lost its loop since ToWorker last found fewer than MaxConcurrent waiting calls
}

const (
	// A computing action is taken over too if it must assist the garbage collector or the system preempts its thread. This
	// happens in bursts and seldom on average.
	waitPenalty   = 8
	blockingScore = 16 * waitPenalty
	maxScore      = 19 * waitPenalty // four successive trials must succeed
	// A route whose calls do not wait has this score. The score becomes positive only after more than four waiting calls, as a
	// busy machine can cause them. Only then does ToWorker pass the route's calls to workers at capacity. Above capacity, one
	// waiting call is sufficient for that.
	minScore = -4 * waitPenalty

	firstWait = int64(50 * time.Millisecond)
	maxWait   = int64(10 * time.Second)
)

// Blocking reports whether a worker should run the route's action: the action is known to block, and no trial is due at now.
func (p *BlockingStat) Blocking(now int64) bool {
	if !p.Learned() {
		return false
	}
	due := p.trial.Load()
	wait := min(2*p.wait.Load(), maxWait)
	// The goroutine that advances the time runs the trial. Until it returns, the trial counts as failed.
	if now < due || !p.trial.CompareAndSwap(due, now+wait) {
		return true
	}
	p.wait.Store(wait)
	return false
}

// Learned reports whether the route's action is known to block.
func (p *BlockingStat) Learned() bool { return p.score.Load() >= blockingScore }

// Suspect reports whether a worker may have to run a call: the score is positive because calls have waited recently, or taken is
// set.
func (p *BlockingStat) Suspect() bool { return p.score.Load() > 0 || p.taken.Load() }

// Waiting reports the number of waiting calls in relation to MaxConcurrent.
type Waiting interface {
	Now() int64         // on the engine's clock
	AtCapacity() bool   // the number is at least MaxConcurrent
	OverCapacity() bool // the number exceeds MaxConcurrent
}

// ToWorker reports whether a worker must run a call of a suspect route: its action is known to block, or MaxConcurrent calls are
// waiting already and the call might wait, too. The second reason does not apply to critical routes.
func (p *BlockingStat) ToWorker(w Waiting, critical bool) bool {
	if p.Blocking(w.Now()) {
		return true
	}
	if !w.AtCapacity() {
		if p.taken.Load() {
			p.taken.Store(false)
		}
		return false
	}
	return !critical && (p.Seen() || p.taken.Load() && w.OverCapacity())
}

// Seen reports whether more calls have waited recently than a busy machine explains.
func (p *BlockingStat) Seen() bool { return p.score.Load() > 0 }

// Waited counts a call that has waited: its loop was blocked, taken over or released. now is the current time.
func (p *BlockingStat) Waited(now int64) {
	p.taken.Store(true)
	s := p.score.Add(waitPenalty)
	if s < blockingScore {
		return
	}
	p.score.Store(maxScore)
	if s < blockingScore+waitPenalty { // the route was inline before
		wait := max(p.wait.Load(), firstWait)
		p.wait.Store(wait)
		p.trial.Store(now + wait)
	}
}

// TakenOver counts a call that has lost or left its loop. If this overlaps a garbage collection, collected is true, and the score stays: a
// call that computes is delayed by the collector.
func (p *BlockingStat) TakenOver(collected bool, now int64) {
	if collected {
		p.taken.Store(true)
	} else {
		p.Waited(now)
	}
}

// Watched reports whether all calls must be watched, not only samples.
func (p *BlockingStat) Watched() bool { return p.score.Load() > minScore }

// Stayed counts a call that has kept its loop and ended at now.
func (p *BlockingStat) Stayed(waited bool, now int64) {
	if waited {
		p.Waited(now)
	} else if p.Watched() {
		p.Returned(now)
	}
}

// Returned counts a call that has kept its loop without waiting and ended at now.
func (p *BlockingStat) Returned(now int64) {
	s := p.score.Load()
	switch {
	case s <= minScore:
	case s < blockingScore:
		p.score.CompareAndSwap(s, s-1)
	default: // a successful trial; the next one is due at once
		left := s - waitPenalty
		if left < blockingScore {
			left = 0
		}
		p.wait.Store(p.wait.Load() / 2)
		p.score.CompareAndSwap(s, left)
		p.trial.Store(now)
	}
}

// Learn marks the route permanently as blocking.
func (p *BlockingStat) Learn() {
	p.trial.Store(math.MaxInt64)
	p.score.Store(maxScore)
}
