//go:build linux

package looph2

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// Before a response is made that is large, as its route's statistics show (Route.Pends), and will be held for long, memory is
// reserved for it. A request that must wait for it does so on a worker, which lends its place meanwhile.

const (
	// muchPending is the unsent part of a response, in bytes, from which memory is reserved before the request begins.
	muchPending = 64 << 10
	// pendsDecay is the divisor by which the estimate decreases with each request.
	pendsDecay = 16
)

// left records the part of a response that the client's windows did not permit at once.
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

// expectsMuch reports whether much of the response will be unsent: it is large, or its client does not read others.
func (x *Wire) expectsMuch() bool {
	route := x.s.Route
	return (route.Pends.Load() > muchPending || x.crowded()) && !route.Critical && !x.own.headOnly
}

func (x *Wire) crowded() bool { return x.h.server.Holders.Crowded(&x.own.s.group) }

// mustAsk reports whether memory must be reserved first. The unread responses of other clients say nothing about a client that
// has read such a response at once: it gets another one, and the next when it has read that one.
func (x *Wire) mustAsk() bool {
	return x.expectsMuch() && (x.crowded() || !x.own.s.prompt.CompareAndSwap(true, false))
}

// ask reserves n bytes. A response that is not known to be large may begin as a probe, unless its client does not read others.
func (x *Wire) ask(a *admission.Account, n int64) admission.Outcome {
	if !x.crowded() && !x.s.Route.Large.Large(x.own.target) {
		return a.ReserveLikely(n)
	}
	return a.ReserveAhead(n)
}

// reserveRoom reserves memory for the unsent part of the response.
func (x *Wire) reserveRoom(ask func(a *admission.Account, n int64) admission.Outcome) admission.Outcome {
	own, server, pends := x.own, x.h.server, &x.s.Route.Pends
	n := max(pends.Load(), streamRoom)
	if bound := server.Budget.Bound(); bound > 0 {
		least := server.Holders.Fair() + 1 // smaller amounts never wait
		n = min(n, max(bound/4, least))    // as in HTTP/1.1
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
		return admission.Granted // no client waits for it
	}
	outcome := admission.Granted
	own.target = x.s.Target()
	if a = a.Lend(); !a.ReserveFirst(n) {
		outcome = ask(a, n)
	}
	if outcome == admission.NoRoom {
		own.target = 0 // the problem response says nothing about the target
	}
	if outcome == admission.Granted {
		if !a.Probing() { // otherwise it says nothing about requests that had to wait
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

// charge reserves, for a response in pieces that is made outside of a loop, the bytes that it will be ahead of its client.
// Otherwise many would begin at once while none holds anything yet. Lasting ones mostly hold nothing.
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

// endAhead ends the reservation for a response in pieces that begins: its actual memory counts from here on. s.mu is held.
func (own *stream) endAhead() {
	if own.ahead {
		own.ahead = false
		own.account.EndAhead()
	}
}

// keepAhead releases the reservation for the response beyond most bytes: the response is complete, or there will be none.
// Received data of the body may be part of it, see transferInput. s.mu is held.
func (own *stream) keepAhead(most int) {
	if own.account == nil {
		return
	}
	if most = max(most, own.in.transferred); most == 0 {
		own.ahead = false
	}
	own.account.KeepAhead(int64(most))
}

// hasRoom reserves memory on the loop. If there is none, the request waits on a worker, or is refused.
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

// hasRoom waits for memory on a worker. If there is none the request is refused. It does not run if its result is not needed
// any more, or its timeout has passed.
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

// onWorker records that the action runs on a worker.
func (x *Wire) onWorker() {
	x.own.s.mu.Lock()
	defer x.own.s.mu.Unlock()
	if a := x.own.account; a != nil {
		a.ProbeBlocks()
	}
}

// awaitRoom is reserveRoom on a worker. It returns MustWait when the result is not needed any more.
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
		return admission.Granted // no reservation is needed any more
	}
	return outcome
}

// await records whether the stream waits for memory. While it does, gone is closed when the response is not needed any more.
func (own *stream) await(awaits bool) (gone <-chan struct{}) {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	own.awaits = awaits
	if awaits && !own.canceled {
		own.flows().gone = make(chan struct{})
	}
	return own.gone
}

// awaitingShare is the divisor of the budget for the goroutines of requests that wait for memory, beyond the first of each
// connection.
const awaitingShare = 4

// beginAwaiting reports whether one more request may wait for memory. Otherwise it is refused.
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

// noRoomForAnswer counts a refusal for a large response, and returns the problem.
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

// refuseElsewhere responds, on a worker, for an action that does not begin.
func (x *Wire) refuseElsewhere(a exchange.Answer, source exchange.Source) {
	x.guarded(func() {
		a = x.call.Decorate(a, source)
		x.observe(&a)
	})
	x.postAnswer(&a)
}
