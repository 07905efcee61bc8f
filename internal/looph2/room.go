//go:build linux

package looph2

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// An answer that is expected to be large and to be held for long, as earlier answers of its route were (Route.Pends), needs
// room before it is made. A request that must wait for room waits on a worker, which yields its place meanwhile.

const (
	// muchPending is the number of bytes expected to be left unsent, from which a request does not begin without room for them.
	muchPending = 64 << 10
	// pendsDecay is the divisor of the part by which the estimate falls with each request.
	pendsDecay = 16
)

// left records how many bytes of an answer its client has not let out at once.
func (own *stream) left(n int64) {
	route := own.route
	if route != nil && own.target != 0 {
		route.Large.Note(own.target, n > muchPending)
	}
	switch {
	case route == nil:
	case n > muchPending && n > route.Pends.Load():
		route.Pends.Store(n)
	case n == 0 && route.Pends.Load() > muchPending:
		own.s.prompt.Store(true)
	}
}

// expectsMuch reports whether much of the request's answer is expected to be left unsent: it is large, or its client takes
// nothing of other answers.
func (x *Wire) expectsMuch() bool {
	route := x.s.Route
	return (route.Pends.Load() > muchPending || x.crowded()) && !route.Critical && !x.own.headOnly
}

func (x *Wire) crowded() bool { return x.h.server.Holders.Crowded(&x.own.s.group) }

// mustAsk reports whether the request needs room first. The estimate from other clients does not apply to a client that has
// taken such an answer at once: it gets another one, and the next when it has taken that one.
func (x *Wire) mustAsk() bool {
	return x.expectsMuch() && (x.crowded() || !x.own.s.prompt.CompareAndSwap(true, false))
}

// ask asks for n bytes. A request whose answer is not known to be large may begin as a probe, unless its client takes nothing
// of other answers.
func (x *Wire) ask(a *admission.Account, n int64) admission.Outcome {
	if !x.crowded() && !x.s.Route.Large.Large(x.own.target) {
		return a.ReserveLikely(n)
	}
	return a.ReserveAhead(n)
}

// reserveRoom asks for room for the part of the answer that is expected to be left unsent.
func (x *Wire) reserveRoom(ask func(a *admission.Account, n int64) admission.Outcome) admission.Outcome {
	own, server, pends := x.own, x.h.server, &x.s.Route.Pends
	n := max(pends.Load(), streamRoom)
	if bound := server.Budget.Bound(); bound > 0 {
		least := server.Holders.Fair() + 1 // a reservation within Fair could not wait
		n = min(n, max(bound/4, least))    // as for HTTP/1.1
		if x.crowded() {
			n = max(n, least)
		}
	}
	if most := server.Holders.MaxAddress; most > 0 {
		n = min(n, most)
	}
	own.s.mu.Lock()
	a := own.accountOf()
	own.s.mu.Unlock()
	if a == nil {
		return admission.Granted // the client does not wait for it any more
	}
	outcome := admission.Granted
	own.target = x.s.Target()
	if a = a.Lend(); !a.ReserveFirst(n) {
		outcome = ask(a, n)
	}
	if outcome == admission.NoRoom {
		own.target = 0 // the size of an error answer must not change the estimate
	}
	if outcome == admission.Granted {
		if !a.Probing() { // else the probe says nothing about the requests that had to wait
			pends.Add(-pends.Load() / pendsDecay)
		}
		own.s.mu.Lock()
		if own.ahead = !own.canceled && !own.late; !own.ahead {
			a.EndAhead()
		}
		own.s.mu.Unlock()
	}
	return outcome
}

// charge charges a streamed answer, before it is made off the loop, for the bytes that it will be ahead of its client.
// Otherwise many could begin at once before any of them is known to hold memory. Long-lived answers mostly hold nothing.
func (x *Wire) charge(lasts, inline bool) {
	own := x.own
	if !lasts && inline && !x.toBackground {
		return
	}
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if lasts {
		own.endAhead()
		return
	}
	if own.ahead || own.headOnly || own.canceled || own.late {
		return
	}
	if a := own.accountOf(); a != nil {
		a.ForceAhead(streamRoom)
		own.ahead = true
	}
}

// endAhead ends the reservation for a streamed answer that begins: from now on the pending bytes are charged. s.mu is held.
func (own *stream) endAhead() {
	if own.ahead {
		own.ahead = false
		own.account.EndAhead()
	}
}

// keepAhead reduces the reservation for the answer to the given number of bytes that will be held of it: the answer is made, or
// there will be none. The reservation may include received bytes of the body, see transferInput. s.mu is held.
func (own *stream) keepAhead(most int) {
	if own.account == nil {
		return
	}
	if most = max(most, own.in.transferred); most == 0 {
		own.ahead = false
	}
	own.account.KeepAhead(int64(most))
}

// hasRoom asks for room on the loop. If there is none, the request waits elsewhere, or is refused.
func (s *session) hasRoom(own *stream, x *Wire, req *http2.Request, body []byte) bool {
	switch x.reserveRoom(x.ask) {
	case admission.MustWait:
		s.sendToWorker(own, x, req, body)
		return false
	case admission.NoRoom:
		s.refuse(own, req, x.noRoomForAnswer(), exchange.FromMemory)
		return false
	}
	return true
}

// hasRoom waits for room on a worker. If there is none, the request is refused. If its client does not wait for the answer any
// more, or its time is over, the action does not run.
func (j *job) hasRoom(x *Wire) bool {
	switch outcome := x.awaitRoom(); {
	case outcome == admission.Granted:
		return true
	case outcome == admission.MustWait:
		x.end()
		j.skip()
	case x.timeIsOver():
		x.refuseElsewhere(x.h.server.Pipeline.Late(x.s.Route), exchange.FromTimeout)
	default:
		x.refuseElsewhere(x.h.server.Pipeline.Answer(x.noRoomForAnswer()), exchange.FromMemory)
	}
	return false
}

// onWorker records that the action runs on a goroutine that may block.
func (x *Wire) onWorker() {
	x.own.s.mu.Lock()
	defer x.own.s.mu.Unlock()
	if a := x.own.account; a != nil {
		a.ProbeBlocks()
	}
}

// awaitRoom is reserveRoom on a worker. It returns MustWait when the client does not wait for the answer any more.
func (x *Wire) awaitRoom() admission.Outcome {
	own := x.own
	over := func() bool {
		own.s.mu.Lock()
		defer own.s.mu.Unlock()
		return own.canceled
	}
	outcome := x.reserveRoom(func(a *admission.Account, n int64) admission.Outcome {
		if outcome := x.ask(a, n); outcome != admission.MustWait {
			return outcome
		}
		if !own.s.beginAwaiting() {
			return a.Refuse()
		}
		gone := own.await(true)
		defer own.s.endAwaiting()
		defer own.await(false)
		x.d.YieldPlace()
		defer x.d.RegainPlace()
		ask := func() admission.Outcome {
			if over() || x.timeIsOver() {
				a.Unwait()
				return admission.NoRoom
			}
			return x.ask(a, n)
		}
		return a.Acquire(ask, gone, func() bool { return over() || !x.expectsMuch() })
	})
	switch {
	case over():
		return admission.MustWait
	case outcome == admission.MustWait:
		return admission.Granted // it need not ask any more
	}
	return outcome
}

// await records whether the stream waits for room. While it waits, gone is closed when the client does not wait for the answer
// any more.
func (own *stream) await(awaits bool) (gone <-chan struct{}) {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	own.awaits = awaits
	if awaits && !own.canceled {
		own.flows().gone = make(chan struct{})
	}
	return own.gone
}

// awaitingShare is the divisor of the part of the budget that requests which wait for room, each with a goroutine, may take
// together. The first request of each connection is not included.
const awaitingShare = 4

// beginAwaiting reports whether one more request may wait for room. If not, it is refused.
func (s *session) beginAwaiting() bool {
	all, of := s.h.awaiting.Add(1), s.awaiting.Add(1)
	if bound := s.h.server.Budget.Bound(); bound <= 0 || of == 1 || all*waitingCost <= bound/awaitingShare {
		return true
	}
	s.endAwaiting()
	return false
}

func (s *session) endAwaiting() {
	s.h.awaiting.Add(-1)
	s.awaiting.Add(-1)
}

// noRoomForAnswer counts a refusal because there is no room for a large answer, and returns the problem.
func (x *Wire) noRoomForAnswer() error {
	own, server := x.own, x.h.server
	own.s.mu.Lock()
	met := admission.NoCap
	if own.account != nil {
		met = own.account.Met()
	}
	own.s.mu.Unlock()
	server.NoteNoMemory("requests whose answers are large", x.s.Route.Pattern, met)
	return server.Pipeline.NoMemory("the answer", met)
}

// refuseElsewhere answers, on a worker, for an action that does not begin.
func (x *Wire) refuseElsewhere(a exchange.Answer, source exchange.Source) {
	x.guarded(func() {
		a = x.call.Decorate(a, source)
		x.observe(&a)
	})
	x.deliverAnswer(&a)
}
