package exchange

import (
	"math"
	"sync/atomic"
	"time"
)

// A Pace is what a route has shown of its speed: whether its action belongs on
// the event loop or blocks so often that it should go to a worker at once.
//
//	inline ──(waits again and again)──▶ blocking
//	inline ◀──(does not wait, several trials in a row)── blocking
//
// A call has waited if its loop had to be taken over or stood still meanwhile, however briefly. On the loop, such a call adds
// waitPenalty to the score and an ordinary one takes 1 off: a route is called blocking when more
// than about one call in waitPenalty waits. Once many calls have not waited, only samples of them are watched.
// How long a call takes on a worker
// says little, for workers compete for the processors: an action that only
// computes takes as long there as others make it. So now and then one call is tried
// on the loop. A failed trial holds up that loop for a moment, and so the time
// between trials doubles with each.
//
// A route has a second pace, for what its streams do when they are carried out: there
// to leave the loop, be it because it was taken or given up, stands for blocking.
type Pace struct {
	score atomic.Int32 // above 0 when calls were taken over, below when many were not; at least leastScore
	wait  atomic.Int64 // between trials, in nanoseconds
	trial atomic.Int64 // when the next one is due, on the engine's clock
	taken atomic.Bool  // a call was taken over since the last one that found room
}

const (
	// An action that computes is taken over too, when the collector makes it help or
	// the system gives its processor to others: in bursts, and seldom on the whole.
	waitPenalty   = 8
	blockingScore = 16 * waitPenalty
	mostScore     = 19 * waitPenalty // four trials in a row must succeed
	// What a route has shown that is quick: so many of its calls may be taken over in a row, because the machine
	// is busy, before it is held up when as many calls wait as may. When more wait, one is enough.
	leastScore = -4 * waitPenalty

	firstWait = int64(50 * time.Millisecond)
	mostWait  = int64(10 * time.Second)
)

// Blocking reports whether the route's action should go to a worker: it is known
// to block, and no trial is due at now.
func (p *Pace) Blocking(now int64) bool {
	if !p.Learned() {
		return false
	}
	due := p.trial.Load()
	wait := min(2*p.wait.Load(), mostWait)
	// The goroutine that moves the time on has the trial. It is taken for failed until it
	// returns.
	if now < due || !p.trial.CompareAndSwap(due, now+wait) {
		return true
	}
	p.wait.Store(wait)
	return false
}

// Learned reports whether the route's action is known to block.
func (p *Pace) Learned() bool { return p.score.Load() >= blockingScore }

// Suspect reports whether a call may have to go to a worker: calls have been taken over lately, or since one
// found room.
func (p *Pace) Suspect() bool { return p.score.Load() > 0 || p.taken.Load() }

// A Waiting says how many calls wait.
type Waiting interface {
	Now() int64         // on the engine's clock
	AtCapacity() bool   // as many as may
	OverCapacity() bool // more than that
}

// ToWorker reports whether a call of a suspect route is to go to a worker: its action is known to block, or on the loop
// it would pass the bound on calls that wait, or pass it further. A critical route is let pass it.
func (p *Pace) ToWorker(w Waiting, critical bool) bool {
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

// Seen reports whether calls have been taken over lately, more than a busy machine explains.
func (p *Pace) Seen() bool { return p.score.Load() > 0 }

// Waited counts a call that has waited, at now: its loop stood still, had to be taken over, or was given up.
func (p *Pace) Waited(now int64) {
	p.taken.Store(true)
	s := p.score.Add(waitPenalty)
	if s < blockingScore {
		return
	}
	p.score.Store(mostScore)
	if s < blockingScore+waitPenalty { // it was inline
		wait := max(p.wait.Load(), firstWait)
		p.wait.Store(wait)
		p.trial.Store(now + wait)
	}
}

// Watched reports whether there is more to learn from calls than samples of them tell.
func (p *Pace) Watched() bool { return p.score.Load() > leastScore }

// Stayed counts a call, ended at now, that kept its loop.
func (p *Pace) Stayed(waited bool, now int64) {
	if waited {
		p.Waited(now)
	} else if p.Watched() {
		p.Returned(now)
	}
}

// Returned counts a call, ended at now, that kept its loop and did not wait.
func (p *Pace) Returned(now int64) {
	s := p.score.Load()
	switch {
	case s <= leastScore:
	case s < blockingScore:
		p.score.CompareAndSwap(s, s-1)
	default: // a trial that went well; the next is due at once
		left := s - waitPenalty
		if left < blockingScore {
			left = 0
		}
		p.wait.Store(p.wait.Load() / 2)
		p.score.CompareAndSwap(s, left)
		p.trial.Store(now)
	}
}

// Learn makes the route one that is known to block, for good.
func (p *Pace) Learn() {
	p.trial.Store(math.MaxInt64)
	p.score.Store(mostScore)
}
