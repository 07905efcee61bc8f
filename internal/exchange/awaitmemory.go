package exchange

import (
	"cmp"
	"context"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// AwaitMemory reserves memory for an answer of which a large part is expected to be pending, as for earlier answers of its route.
// It waits for the memory in the queue of the budget while the client stays connected. If the wait is too long, it returns a 503
// problem.
func (s *Server) AwaitMemory(w Wire, state *State, a *memory.Account, ctx func() context.Context) error {
	route, left := state.Route, int64(0)
	if state.Method == http.MethodHead {
		return nil // no body is sent
	}
	n := s.pendingRoom(route.Pends.Load())
	outcome := a.Reserve(memory.Output, n)
	if outcome == memory.Granted {
		route.lessPending()
		return nil
	}
	if !state.Loaded {
		left = w.ContentLength()
	}
	gone := false
	if outcome == memory.MustWait {
		w.MayWait()
		a.Force(memory.Input, BackgroundCost) // the waiting goroutine
		outcome = a.Acquire(memory.Output, n, ctx().Done(), func() bool {
			gone = Lost(w, ctx(), left, 0)
			return gone || !route.ExpectsPending()
		})
		a.Release(memory.Input, BackgroundCost)
		w.Waited()
	}
	switch {
	case gone:
		return s.BodyCut(cmp.Or(ctx().Err(), context.Canceled))
	case outcome == memory.NoRoom:
		s.NoteNoMemory("requests whose answers are large", route.Pattern, a.Met())
		return s.Pipeline.NoMemory("the answer", a.Met())
	}
	return nil
}

// pendingRoom returns the number of bytes to reserve for an answer of which n bytes are expected to be pending. It is more than
// memory.Small. A single answer may be larger than the reservation.
func (s *Server) pendingRoom(n int64) int64 {
	if bound := s.Budget.Bound(); bound > 0 {
		n = min(n, max(bound/4, memory.Small+1))
	}
	if most := s.Budget.MaxAddress(); most > 0 {
		n = min(n, most)
	}
	return n
}

// pendsDecay is the divisor of Route.Pends that gives the part by which lessPending lowers it.
const pendsDecay = 16

// Pended records that the socket did not accept n bytes of an answer at once.
func (r *Route) Pended(n int64) {
	if n > memory.Small && n > r.Pends.Load() {
		r.Pends.Store(n)
	}
}

// ExpectsPending reports whether the socket is expected not to accept a large part of the next answer at once.
func (r *Route) ExpectsPending() bool { return r.Pends.Load() > memory.Small && !r.Critical }

// lessPending lowers the estimate Pends a little, so that it stays near the maximum of recent answers.
func (r *Route) lessPending() { r.Pends.Add(-r.Pends.Load() / pendsDecay) }
