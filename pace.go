package dunlin

import "sync/atomic"

// A pace is what a route has shown of its speed: whether its action belongs on
// the event loop or blocks so often that it should go to a worker at once.
//
//	inline ──(taken over again and again)──▶ blocking
//	inline ◀──(quick on workers, many times in a row)── blocking
//
// On the loop, a call that had to be taken over adds takeoverPenalty to the
// score and an ordinary one takes 1 off: a route is called blocking when more
// than about one call in takeoverPenalty blocks. On a worker every call is
// timed, so a route that has become quick is noticed without trying it on the
// loop, where a wrong guess would hold up others.
type pace struct {
	score atomic.Int32 // 0 when nothing has been seen
	quick atomic.Int32 // quick calls on workers in a row
}

const (
	takeoverPenalty = 64
	blockingScore   = 3 * takeoverPenalty
	mostScore       = 4 * takeoverPenalty
	quickEnough     = 100_000 // nanoseconds on a worker that would not hurt on a loop
	quickCalls      = 1000    // so many in a row make a route inline again
)

// blocking reports whether the route's action should go to a worker.
func (p *pace) blocking() bool { return p.score.Load() >= blockingScore }

// tookOver counts a call whose loop had to be taken over.
func (p *pace) tookOver() {
	if s := p.score.Add(takeoverPenalty); s > mostScore {
		p.score.Store(mostScore)
	}
}

// returned counts a call that stayed on its loop. It costs a load when there is
// nothing to forget.
func (p *pace) returned() {
	if s := p.score.Load(); s > 0 && s < blockingScore {
		p.score.CompareAndSwap(s, s-1)
	}
}

// measured counts a call on a worker that took the given nanoseconds.
func (p *pace) measured(nanoseconds int64) {
	if !p.blocking() {
		return
	}
	if nanoseconds > quickEnough {
		if p.quick.Load() != 0 {
			p.quick.Store(0)
		}
		return
	}
	if p.quick.Add(1) >= quickCalls {
		p.quick.Store(0)
		p.score.Store(0)
	}
}
