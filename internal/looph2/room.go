//go:build linux

package looph2

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// Before an answer is made that will be held for long, and is large, as the route has shown (Route.Pends), there
// must be room for it. Who must wait for that does so on a worker, which lends its place meanwhile.

const (
	// muchPending is the part of an answer, in bytes, that is left, from which a request is not begun without
	// room for it.
	muchPending = 64 << 10
	// pendsDecay says by which part, one in so many, the estimate falls with each request.
	pendsDecay = 16
)

// left notes how much of an answer its client has not let out at once.
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

// expectsMuch reports whether much of the request's answer will be left: it is large, or its client takes
// nothing of others.
func (x *Wire) expectsMuch() bool {
	route := x.s.Route
	return (route.Pends.Load() > muchPending || x.crowded()) && !route.Critical && !x.own.headOnly
}

func (x *Wire) crowded() bool { return x.h.server.Holders.Crowded(&x.own.s.group) }

// mustAsk reports whether there must be room first. What others leave says nothing of a client that has taken such
// an answer at once: it gets another one, and the next when that has been taken.
func (x *Wire) mustAsk() bool {
	return x.expectsMuch() && (x.crowded() || !x.own.s.prompt.CompareAndSwap(true, false))
}

// ask asks for n bytes. What is not known to be large may begin as a probe, unless its client takes nothing of others.
func (x *Wire) ask(a *admission.Account, n int64) admission.Outcome {
	if !x.crowded() && !x.s.Route.Large.Large(x.own.target) {
		return a.ReserveLikely(n)
	}
	return a.ReserveAhead(n)
}

// reserveRoom asks for room for what the answer will leave.
func (x *Wire) reserveRoom(ask func(a *admission.Account, n int64) admission.Outcome) admission.Outcome {
	own, server, pends := x.own, x.h.server, &x.s.Route.Pends
	n := max(pends.Load(), streamRoom)
	if bound := server.Budget.Bound(); bound > 0 {
		least := server.Holders.Fair() + 1 // what is within it could not wait
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
		return admission.Granted // nobody waits for it
	}
	outcome := admission.Granted
	own.target = x.s.Target()
	if a = a.Lend(); !a.ReserveFirst(n) {
		outcome = ask(a, n)
	}
	if outcome == admission.NoRoom {
		own.target = 0 // what it is answered with says nothing
	}
	if outcome == admission.Granted {
		if !a.Probing() { // else it says nothing of those that had to wait
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

// charge charges what an answer in pieces will be ahead of its client, before it is made elsewhere than on a loop: else
// many would be begun at once while none is known to hold anything. Those that last mostly hold nothing.
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

// endAhead ends the reservation for an answer in pieces that begins: from here on what there is counts. s.mu is held.
func (own *stream) endAhead() {
	if own.ahead {
		own.ahead = false
		own.account.EndAhead()
	}
}

// keepAhead gives back what is reserved for the answer, but for so many bytes that will be held of it: it is made, or
// there will be none. What has come of the body may be charged so, too, see transferInput. s.mu is held.
func (own *stream) keepAhead(most int) {
	if own.account == nil {
		return
	}
	if most = max(most, own.in.transferred); most == 0 {
		own.ahead = false
	}
	own.account.KeepAhead(int64(most))
}

// hasRoom asks for room on the loop. Where there is none, the request waits elsewhere, or is refused.
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

// hasRoom waits for room on a worker. Where there is none the request is refused, and not done if nobody waits
// for the answer any more, or its time is over.
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

// onWorker notes that the action runs where those do that block.
func (x *Wire) onWorker() {
	x.own.s.mu.Lock()
	defer x.own.s.mu.Unlock()
	if a := x.own.account; a != nil {
		a.ProbeBlocks()
	}
}

// awaitRoom is reserveRoom on a worker. It is MustWait when nobody waits for the answer any more.
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
		x.d.Lend()
		defer x.d.Regain()
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

// await notes whether the stream waits for room. While it does, gone is closed when nobody waits for the answer any more.
func (own *stream) await(awaits bool) (gone <-chan struct{}) {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	own.awaits = awaits
	if awaits && !own.canceled {
		own.flows().gone = make(chan struct{})
	}
	return own.gone
}

// awaitingShare is which part of the budget those take at most who wait for room, each with a goroutine, beside the
// first of each connection.
const awaitingShare = 4

// beginAwaiting reports whether one more request may wait for room. Else it is refused.
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

// noRoomForAnswer counts that there is no room for a large answer, and returns the problem.
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

// refuseElsewhere answers for an action that is not begun, on a worker.
func (x *Wire) refuseElsewhere(a exchange.Answer, source exchange.Source) {
	x.guarded(func() {
		a = x.call.Amend(a, source)
		x.observe(&a)
	})
	x.postAnswer(&a)
}
