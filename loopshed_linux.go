package dunlin

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// overdue reports whether the request has waited too long to be served.
func (x *loopExchange) overdue() bool {
	return x.d.Overdue() && (!x.request.s.Route.Critical)
}

// shed refuses an overdue request.
func (x *loopExchange) shed() progress {
	x.handler.app.shed.Add(admission.QueueTime)
	return x.refuseWhole(x.handler.late, FromOverload)
}

// refuseWhole answers a request that is not begun.
func (x *loopExchange) refuseWhole(resp Response, source AnswerSource) progress {
	if x.d.Draining() {
		x.closing = true
	}
	x.countAnswer(resp.a.Class())
	x.answerAlone(&resp, source)
	x.end()
	if x.closing {
		x.c.CloseLingering()
		return connectionOver
	}
	return moreRequests
}

// answerAlone sends an answer that no action made. Policies and observers run as
// actions do: a loop that they hold up is taken over.
func (x *loopExchange) answerAlone(resp *Response, source AnswerSource) {
	app, r := x.handler.app, &x.request
	r.source = source
	watched := app.hasWatch(r)
	if watched || len(app.policies) > 0 {
		x.d.Enter()
		app.apply(r, resp)
		if watched {
			app.observe(r, &resp.a, x.took())
		}
		x.leave()
	}
	if resp.a.Own() != nil {
		resp.a.Claim()
	}
	x.respond(&resp.a)
}

// observe tells who observes the answer, before it is sent.
func (x *loopExchange) observe(resp *Response) {
	x.d.Enter()
	x.handler.app.observe(&x.request, &resp.a, x.took())
	x.leave()
}

// leave ends what d.Enter has begun, if it is not an action.
func (x *loopExchange) leave() {
	if !x.d.Leave() {
		x.comeBack()
		x.flushCount()
	}
}

// took returns how long the present request has taken.
func (x *loopExchange) took() time.Duration { return time.Duration(x.d.Clock() - x.count.since) }

// knowHead makes what there is of a request known to those who observe its answer:
// nothing, or the head.
func (x *loopExchange) knowHead(u *unfinished) {
	if u == nil || !u.complete {
		x.request.begin(x.head.Method.String(), "", "", false)
		x.request.unread = true
		return
	}
	u.head.CopyTo(&x.head, u.raw)
	x.readHead()
}

// policyPatience is how long a loop waits for the policies of an answer that it gives in
// the middle of something else, and policyPause how long it does without them when that
// was not enough.
const (
	policyPatience = 100 * time.Millisecond
	policyPause    = time.Second
)

// refuseElsewhere answers while the loop makes room and cannot be taken over: policies and
// observers run on a goroutine of their own. Policies that take too long are left
// out, observers are not waited for.
func (x *loopExchange) refuseElsewhere(problem ProblemDetails, u *unfinished) {
	app := x.handler.app
	y := x.handler.NewScratch().(*loopExchange)
	y.c, y.head.Method = x.c, x.head.Method
	y.request.begin(x.head.Method.String(), "", "", false)
	y.request.unread = true
	if u != nil && u.complete {
		y.kept = append(y.kept, u.raw...)
		u.head.CopyTo(&y.head, y.kept)
		y.readHead()
	}
	y.request.source = FromMemory
	result := make(chan Response, 1)
	go func() {
		resp := Problem(problem)
		app.apply(&y.request, &resp)
		seen := exchange.Bare(resp.a.Status(), exchange.Complete)
		seen.SetBody(resp.a.Body) // for its length
		result <- resp
		app.observe(&y.request, &seen, 0)
	}()
	h, resp := x.handler, Response{}
	if x.d.Now() >= h.policiesFrom.Load() {
		late := time.NewTimer(policyPatience)
		defer late.Stop()
		select {
		case resp = <-result:
		case <-late.C:
			h.policiesFrom.Store(x.d.Clock() + int64(policyPause))
		}
	}
	if resp.a.Kind() == exchange.Missing {
		resp = Problem(problem)
	}
	resp.a.Claim()
	x.respond(&resp.a)
	x.c.CloseLingering()
}
