//go:build linux

package looph2

import (
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// serve answers a request that has arrived entirely. It is false when the connection belongs to another driver now.
func (s *session) serve(own *stream, req *http2.Request, body []byte, consumed int) bool {
	if req.Status != 0 {
		s.refuse(own, req, s.h.server.Pipeline.Problem(req.Status, req.Why, nil), exchange.FromProtocol)
		return true
	}
	d := s.d
	x := s.h.wireOf(s.d)
	x.use(d, own, req, body)
	s.mu.Lock()
	own.action.on(start)
	s.mu.Unlock()
	found := x.find()
	if !found && !x.findWatched(consumed) {
		x.runs = away
		x.settleDetached(x.act())
		return false
	}
	route := x.State.Route
	switch {
	case d.Overdue() && !route.Critical:
		s.shed(own, x)
		return true
	case s.mustWaitInBacklog(own, route):
		own.route = route
		s.keepForWorker(own, x, req, body)
		s.putOff(own)
		return true
	case x.TooSlowForLoop(d):
		s.sendToWorker(own, x, req, body)
		return true
	}
	own.route = route
	d.Out, s.h2.Out = s.h2.Out, nil
	s.visit.Served++
	d.EnterPart(consumed)
	a := x.act()
	if !d.Leave() {
		x.settleDetached(a)
		return false
	}
	s.h2.Out, d.Out = d.Out, nil
	if !route.NoRoute {
		route.Blocking.Stayed(x.waited, d.Now())
		if x.made != madeAway {
			route.Streams.Stayed(x.made == madeSlowly, d.Now())
		}
	}
	if x.runs == leaving {
		scratchOf(d).wire = nil
		x.goToBackground(a)
		return true
	}
	s.settle(x, &a)
	return true
}

// sendToWorker runs the action on a worker.
func (s *session) sendToWorker(own *stream, x *Wire, req *http2.Request, body []byte) {
	s.keepForWorker(own, x, req, body)
	s.enqueue(own, x.State.Route.Critical)
}

// keepForWorker moves the request to the stream.
func (s *session) keepForWorker(own *stream, x *Wire, req *http2.Request, body []byte) {
	if req != &own.req {
		req.CopyTo(&own.req)
	}
	if len(body) > 0 && !view.Within(view.String(body), own.here) {
		own.here = append(own.here[:0], body...)
	}
	own.begun = x.since
}

// findWatched routes the request with user code that may block, like an action. It is false when the connection belongs to
// another driver now.
func (x *Wire) findWatched(consumed int) bool {
	s, d := x.own.s, x.d
	d.Out, s.h2.Out = s.h2.Out, nil
	x.Phase.Routes(true)
	d.EnterPart(consumed)
	x.guarded(func() { x.Call.FindCarefully(view.String(x.req.Authority())) })
	stayed := d.Leave()
	x.Phase.Routes(false)
	if !stayed {
		x.inFlight.End()
		x.countInFlight(&x.State.Route.Counts)
		x.startTimeout()
		return false
	}
	s.h2.Out, d.Out = d.Out, nil
	return true
}

// act runs the action, and carries out the rest of its answer. For an answer to be carried out elsewhere it returns one of the
// kind Later, and sets runs to leaving.
func (x *Wire) act() (a exchange.Answer) {
	x.guarded(func() { a = x.actNow() })
	return a
}

func (x *Wire) actNow() exchange.Answer {
	x.d.Watch(x.State.Route.Blocking.Watched())
	a := x.Call.Run()
	x.waited = x.d.Waited()
	x.acted(&a)
	return a
}

// acted does the steps after an action.
//
//go:noinline
func (x *Wire) acted(a *exchange.Answer) {
	if a.Kind() == exchange.Later {
		inline := x.d != nil && x.d.Inline()
		if x.mayMove() && (a.Own().Lasts || inline && !x.State.Route.NoRoute && x.State.Route.Streams.Blocking(x.d.Now())) {
			x.runs = leaving
		}
		if x.charge(a.Own().Lasts, inline); x.runs == leaving {
			return
		}
		x.Phase.Produces(inline)
		if inline {
			x.d.Watch(x.State.Route.Streams.Watched())
		}
		*a = x.Call.Produce(*a)
		if inline {
			x.made = madeHere
			if x.d.Waited() {
				x.made = madeSlowly
			}
		}
		x.Phase.Produces(false)
	}
	x.observe(a)
}

// carryOut makes an answer that is made while it is sent, on a goroutine that has no loop.
func (x *Wire) carryOut(a exchange.Answer) (made exchange.Answer) {
	x.guarded(func() {
		made = x.Call.Produce(a)
		x.observe(&made)
	})
	return made
}

func (x *Wire) observe(a *exchange.Answer) {
	x.CloseBody()
	if x.State.Watched && x.answers() {
		x.Call.Observe(*a, x.took())
	}
}

// guarded calls f, which runs user code. If that code ends its goroutine (runtime.Goexit), the request is answered with 500:
// here or, where there is a loop, in Handler.Abandoned.
func (x *Wire) guarded(f func()) {
	if x.runs == onLoop {
		f()
		return
	}
	returned := false
	defer func() {
		if !returned {
			x.giveUpOn()
		}
	}()
	f()
	returned = true
}

// giveUpOn delivers an answer for an action that ended its goroutine. Which driver has the loop now is not known.
func (x *Wire) giveUpOn() {
	server := x.h.server
	server.Log.Error("an action ended its goroutine instead of returning", "route", x.State.Route.Pattern)
	a := server.Pipeline.Answer(server.Pipeline.Problem(http.StatusInternalServerError, "", nil))
	x.CloseBody()
	own := x.own
	own.kept.Store(true)
	late := !x.answers()
	own.s.mu.Lock()
	started := own.answer.started()
	own.s.mu.Unlock()
	defer func() { x.deliverAnswer(&a) }() // deferred, since a feature may end this goroutine
	if started || late {
		a.Claim()
	}
	if started {
		a.Release()
		a = exchange.Bare(0, exchange.Abort)
	} else if !late {
		a = x.Call.Decorate(a, exchange.FromPanic)
	}
	if x.State.Watched && !late {
		x.Call.Observe(a, x.took())
	}
}

// mayMove reports whether the rest of the request does not need the memory in which it arrived.
func (x *Wire) mayMove() bool {
	return !x.HasStd() && x.own.intake != streamed && (len(x.whole.Bytes) == 0 || !x.State.Viewed)
}

// goToBackground carries out a long-lived response on a goroutine of its own, with an almost empty stack. The wire does not
// belong to its driver any more.
func (x *Wire) goToBackground(a exchange.Answer) {
	x.keepRequest()
	x.d, x.runs = nil, away
	x.own.kept.Store(true)
	x.own.s.mu.Lock()
	x.own.background = true
	x.own.holdInput()
	if !x.own.action.isLate() { // else it was answered already, and is not in flight any more
		x.countInFlight(&x.State.Route.Counts)
	}
	x.own.s.mu.Unlock()
	x.startTimeout()
	go func() {
		defer x.h.recovered()
		a := x.carryOut(a)
		x.deliverAnswer(&a)
	}()
}

// keepRequest copies head and body to memory of the stream.
func (x *Wire) keepRequest() {
	own, st := x.own, x.State
	if x.req != &own.req {
		viewed := view.Within(st.Path, x.req.Path())
		x.req.CopyTo(&own.req)
		x.req = &own.req
		if viewed {
			st.Path = view.String(x.req.Path())
		}
		st.Query = view.String(x.req.Query())
	}
	if len(x.whole.Bytes) > 0 {
		body := append([]byte(nil), x.whole.Bytes...)
		x.MoveBody(&x.whole, body)
		x.own.here = body // the basis of its charge
		if st.Loaded {
			st.Whole = body
		}
	}
}

// settle sends the answer of an action that has stayed on its loop.
func (s *session) settle(x *Wire, a *exchange.Answer) {
	own, route := x.own, x.State.Route
	scratchOf(s.d).count.Add(s.d, &route.Counts, x.Outcome(x.h.server, a))
	if x.kept {
		own.kept.Store(true)
	}
	if x.closing {
		s.sayGoodbye()
	}
	switch a.Kind() {
	case exchange.Sent:
		a.Release()
	case exchange.Abort:
		a.Release()
		s.h2.Reset(own.st, http2.InternalError)
	default:
		if x.HasStd() && own.outOfTime() {
			a.Release()
			break
		}
		p := pending{answer: *a, body: view.Bytes(a.Body), length: a.Announced(), undated: x.Undated, is: true, counts: &route.Counts}
		s.respond(own, &p, x)
	}
	x.end()
	s.mu.Lock()
	if own.rests() {
		own.trimReservation(0) // the request's memory is a reservation now
	}
	own.action.on(end)
	s.concludeLocked(own)
}

// settleDetached is deliverAnswer for an action that has lost its loop.
func (x *Wire) settleDetached(a exchange.Answer) {
	if x.runs == leaving {
		x.runs = away
		a = x.carryOut(a)
	}
	x.deliverAnswer(&a)
}

// deliverAnswer stores the answer and notifies the loop. It is called on a goroutine without the loop.
func (x *Wire) deliverAnswer(a *exchange.Answer) {
	own := x.own
	s := own.s
	s.mu.Lock()
	late, outOfTime := !own.decide(), own.lapsed || own.writing.Passed()
	s.mu.Unlock()
	p := pending{}
	switch kind := a.Kind(); {
	case late && kind == exchange.Later:
		x.Call.Drop(*a)
	case late:
		a.Release()
	case kind == exchange.Sent || kind == exchange.Abort || outOfTime:
		x.countElsewhere(&x.State.Route.Counts, x.Outcome(x.h.server, a))
		a.Release()
	default:
		x.countElsewhere(&x.State.Route.Counts, x.Outcome(x.h.server, a))
		p = pending{answer: *a, length: a.Announced(), undated: x.Undated, is: true}
		if own.kind != headOnly {
			p.body = x.keepBody(a, view.Bytes(a.Body))
		}
	}
	if !late {
		x.inFlight.End()
	}
	closing, counts := x.closing, &x.State.Route.Counts
	x.end()
	s.mu.Lock()
	if a.Kind() == exchange.Abort && !late {
		own.answer.on(abort)
	}
	own.wire = nil
	own.action.on(end)
	if own.in.unread.size > 0 {
		own.dropUnread() // it is not read any more
		own.holdInput()
	}
	own.hasMoved() // wakes a goroutine of the action that still reads
	own.setWorking(false)
	switch p.counts = counts; {
	case !p.is:
	case own.answer.canceled(): // the client does not want it any more
		p.release()
	default:
		own.setComplete(p)
	}
	if own.complete == nil || own.complete.free == 0 {
		own.trimReservation(0) // the request's memory is a reservation now, from which the charge of the answer was taken
	} else {
		own.trimReservation(own.complete.free)
	}
	own.closing = own.closing || closing
	s.notify(own)
	s.mu.Unlock()
}

// A refusal is an answer that no action makes.
type refusal struct {
	answer exchange.Answer
	source exchange.Source
	route  *exchange.Route // nil if the request was not routed
}

// refuse answers a request with a problem. If features may block, the answer is made elsewhere.
func (s *session) refuse(own *stream, req *http2.Request, problem error, source exchange.Source) {
	s.h.server.Refused.Add(1)
	x := s.h.wireOf(s.d)
	x.use(s.d, own, req, nil)
	x.setState()
	x.Call.Begin(req.Status == 0)
	s.answerAlone(own, x, refusal{s.h.server.Pipeline.Answer(problem), source, nil})
}

// shed refuses an overdue request.
func (s *session) shed(own *stream, x *Wire) {
	s.h.server.Shed.Add(admission.QueueTime)
	s.answerAlone(own, x, refusal{s.h.late, exchange.FromOverload, x.State.Route})
}

// answerAlone sends an answer that no action made.
func (s *session) answerAlone(own *stream, x *Wire, r refusal) {
	if x.Call.Hooked() {
		if x.req != &own.req {
			x.req.CopyTo(&own.req)
		}
		x.Call.End()
		own.refusal = &r
		s.enqueue(own, true)
		return
	}
	scratchOf(s.d).count.Add(s.d, &x.State.Route.Counts, x.Outcome(x.h.server, &r.answer))
	a := x.Call.Decorate(r.answer, r.source)
	p := pending{answer: a, body: view.Bytes(a.Body), length: a.Announced(), is: true}
	s.respond(own, &p, x)
	x.end()
	s.mu.Lock()
	own.action.on(end)
	evicted := own.rests() && own.noRoom
	s.mu.Unlock()
	if evicted {
		s.cut(own)
		return
	}
	s.conclude(own)
}
