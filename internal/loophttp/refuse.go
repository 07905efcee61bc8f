//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// overdue reports whether the request has waited too long to be served.
func (x *wire) overdue() bool {
	return x.d.Overdue() && (!x.s.Route.Critical)
}

// shed refuses an overdue request.
func (x *wire) shed() progress {
	x.handler.server.Shed.Add(admission.QueueTime)
	return x.refuseWhole(x.handler.late, exchange.FromOverload)
}

// refuseWhole answers a request that is not begun.
func (x *wire) refuseWhole(resp exchange.Answer, source exchange.Source) progress {
	if x.d.Draining() {
		x.closing = true
	}
	x.countAnswer(resp.Class())
	x.answerAlone(resp, source)
	x.end()
	if x.closing {
		x.c.CloseLingering()
		return connectionOver
	}
	return moreRequests
}

// answerAlone sends an answer that no action made. Policies and observers run as
// actions do: a loop that they hold up is taken over.
func (x *wire) answerAlone(resp exchange.Answer, source exchange.Source) {
	if x.call.Hooked() {
		x.d.Enter()
		resp = x.call.Amend(resp, source)
		if x.s.Watched {
			x.call.Observe(resp, x.took())
		}
		x.leave()
	} else {
		resp = x.call.Amend(resp, source)
	}
	x.respond(&resp)
}

// observe tells who observes the answer, before it is sent.
func (x *wire) observe(resp exchange.Answer) {
	x.d.Enter()
	x.call.Observe(resp, x.took())
	x.leave()
}

// leave ends what d.Enter has begun, if it is not an action.
func (x *wire) leave() {
	if !x.d.Leave() {
		x.endInFlight()
		x.flushCount()
	}
}

// took returns how long the present request has taken.
func (x *wire) took() time.Duration { return time.Duration(x.d.Clock() - x.count.since) }

// knowHead makes what there is of a request known to those who observe its answer:
// nothing, or the head.
func (x *wire) knowHead(u *unfinished) {
	if u == nil || !u.complete {
		x.s.Set(x.head.Method.String(), "", "", false)
		x.call.Begin(false)
		return
	}
	u.head.CopyTo(&x.head, u.raw)
	x.readHead()
	x.call.Begin(true)
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
func (x *wire) refuseElsewhere(problem error, u *unfinished) {
	pipeline := x.handler.server.Pipeline
	y := x.handler.NewScratch().(*wire)
	y.c, y.head.Method = x.c, x.head.Method
	if u != nil && u.complete {
		y.kept = append(y.kept, u.raw...)
		u.head.CopyTo(&y.head, y.kept)
		y.readHead()
		y.call.Begin(true)
	} else {
		y.s.Set(x.head.Method.String(), "", "", false)
		y.call.Begin(false)
	}
	result := make(chan exchange.Answer, 1)
	go func() {
		resp := y.call.Amend(pipeline.Answer(problem), exchange.FromMemory)
		seen := exchange.Bare(resp.Status(), exchange.Complete)
		seen.SetBody(resp.Body) // for its length
		result <- resp
		if y.s.Watched {
			y.call.Observe(seen, 0)
		}
	}()
	h, resp := x.handler, exchange.Answer{}
	if x.d.Now() >= h.policiesFrom.Load() {
		late := time.NewTimer(policyPatience)
		defer late.Stop()
		select {
		case resp = <-result:
		case <-late.C:
			h.policiesFrom.Store(x.d.Clock() + int64(policyPause))
		}
	}
	if resp.Kind() == exchange.Missing {
		resp = pipeline.Answer(problem)
		resp.Claim()
	}
	x.respond(&resp)
	x.c.CloseLingering()
}
