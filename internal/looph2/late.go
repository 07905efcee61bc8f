//go:build linux

package looph2

import (
	"context"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// The timeout of an action (exchange/late.go) counts from the arrival of its request, including the time that the request waits
// for a worker or for room. A timer is set when the action loses its loop, since it has not blocked before. session.mu guards
// the decision between the answer of the action and the late answer, which is made before observers are called: either the
// timer expires the action, or the action decides to answer, by beginning its answer or by returning it.

// A limit stops the work of an action, guarded by session.mu.
type limit struct {
	cancel  context.CancelFunc // ends the request's context, nil before there is one
	timer   *time.Timer        // nil before the action has lost its loop
	wire    *Wire              // while timer is set and the action runs
	timeout *exchange.TimeoutContext
}

// detached is called, on any goroutine, when another driver takes the loop from the action of the wire, or when the action gives up
// the loop. The action may be running.
func (x *Wire) detached(collected bool) (waits bool) {
	own := x.own
	own.kept.Store(true)
	if x.Phase.Routing() {
		x.countInFlight(&x.h.server.Unmatched.Counts) // its route is not known yet
		return true
	}
	own.s.mu.Lock()
	if own.intake != bare && own.accountOf() != nil { // its head, body and trailers are in the stream's memory
		own.setWorking(true)
		own.holdInput()
	}
	own.s.mu.Unlock()
	route := x.State.Route
	x.countInFlight(&route.Counts)
	switch {
	case route.NoRoute:
	case x.Phase.Producing():
		route.Streams.TakenOver(collected, x.now())
	default:
		route.Counts.Takeovers.Add(1)
		route.Blocking.TakenOver(collected, x.now())
	}
	x.startTimeout()
	return !x.Phase.Answering()
}

// startTimeout sets the timer of a route with a timeout.
func (x *Wire) startTimeout() {
	timeout := x.State.Route.Timeout
	if timeout <= 0 {
		return
	}
	own := x.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if own.action != running || own.timer != nil {
		return
	}
	own.wire = x
	own.timer = time.AfterFunc(max(timeout-x.took(), 1), own.expire)
}

// liftTimeout lifts the timeout because the answer begins. It returns false if the late answer was made before.
func (x *Wire) liftTimeout() bool {
	own := x.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if own.action.isLate() {
		return false
	}
	own.answer.on(begin)
	own.decide()
	if own.timeout != nil {
		own.timeout.Lift()
	}
	return true
}

// answers decides that the action answers. It returns false if the late answer was made before. User code that runs between the
// decision and the answer has no time limit.
func (x *Wire) answers() bool {
	own := x.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	return own.decide()
}

// decide records that the action answers. It returns false if the late answer was made before. s.mu is held.
func (own *stream) decide() bool {
	own.action.on(decide)
	if own.timer != nil {
		own.timer.Stop()
	}
	return !own.action.isLate()
}

func (x *Wire) isLate() bool {
	own := x.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	return own.action.isLate()
}

// expire answers for an action that takes too long.
func (own *stream) expire() {
	s := own.s
	s.mu.Lock()
	if own.action != running || own.answer.canceled() {
		s.mu.Unlock()
		return
	}
	own.action.on(expire)
	x, y := own.wire, s.h.newWire()
	y.use(nil, own, x.req, nil)
	copied := new(http2.Request)
	x.req.CopyTo(copied)
	y.req, y.since, y.clock = copied, x.since, x.clock
	y.setState()
	y.Call.Begin(true)
	y.State.Route = x.State.Route
	y.Call.InheritFrom(x.Call)
	x.inFlight.End()
	timeout := own.timeout
	own.trimReservation(0) // the answer of the action is dropped
	own.hasMoved()
	s.mu.Unlock()
	if timeout != nil {
		timeout.End(context.DeadlineExceeded)
	}
	a := s.h.server.Pipeline.Late(y.State.Route)
	y.countElsewhere(&y.State.Route.Counts, y.Outcome(s.h.server, &a))
	defer func() { own.answerLate(y, &a) }() // deferred, since a feature may end this goroutine
	a = y.Call.Decorate(a, exchange.FromTimeout)
	if y.State.Watched {
		y.Call.Observe(a, y.took())
	}
}

// answerLate passes the late answer, instead of the action's answer, to the loop.
func (own *stream) answerLate(y *Wire, a *exchange.Answer) {
	s := own.s
	p := pending{answer: *a, body: y.keepBody(a, view.Bytes(a.Body)), length: a.Announced(), is: true}
	y.Call.End()
	s.mu.Lock()
	defer s.mu.Unlock()
	own.setComplete(p)
	own.action.on(answerLate)
	s.notify(own)
}
