package stdhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// answerWithin is answer for a route with a limit on time: the action gets a goroutine
// of its own, so that this one can answer without it. It is false if it has: then the
// wire is the action's.
func (x *wire) answerWithin(route *exchange.Route) bool {
	ctx := exchange.NewLimitedContext(x.req.Context(), time.Now().Add(route.Timeout))
	defer ctx.End(context.Canceled)
	x.req, x.race = x.req.WithContext(ctx), &exchange.Race{Context: ctx}
	late := x.inCaseOfLate()
	count := x.count // x may be the action's for longer
	x.count.shard = nil
	done := make(chan exchange.Answer, 1)
	go x.run(done)
	timer := time.NewTimer(route.Timeout)
	defer timer.Stop()
	var resp exchange.Answer
	select {
	case resp = <-done:
	case <-timer.C:
		if x.race.Expire() {
			count.end(x.answerLate(late, route, done))
			return false
		}
		resp = <-done
	}
	count.end(resp.Class())
	x.observe(resp)
	x.sendSettled(&resp)
	return true
}

// answerLate answers without the action, and returns the class of the answer.
func (x *wire) answerLate(late *wire, route *exchange.Route, done <-chan exchange.Answer) uint8 {
	resp := x.service.Pipeline.Late(route)
	late.w.Header().Set("Connection", "close")
	late.call.Succeed(x.call)
	class := resp.Class()
	late.answerAlone(resp, exchange.FromTimeout)
	late.leaveBody()
	go func() {
		<-done
		x.call.Abandon()
	}()
	return class
}

// inCaseOfLate returns the wire for the answer that is given without the action: it
// has nothing that the action may change.
func (x *wire) inCaseOfLate() *wire {
	late := &wire{service: x.service, w: x.w, req: x.req}
	if x.call.Hooked() {
		own := *x.req
		own.Header = own.Header.Clone()
		late.req = &own
	}
	late.call = x.service.Pipeline.NewCall(late)
	late.s = late.call.State()
	late.s.Set(x.s.Method, x.s.Path, x.s.Query, false)
	late.call.Begin(true)
	late.s.Route = x.s.Route
	return late
}

// run runs the action and reports its answer, also when it ends the goroutine.
func (x *wire) run(done chan<- exchange.Answer) {
	var resp exchange.Answer
	returned := false
	defer func() {
		if !returned {
			resp = x.service.Pipeline.Answer(x.service.Pipeline.Problem(http.StatusInternalServerError, "", errGoexit))
		}
		done <- resp
	}()
	resp = x.call.Run() // it recovers what it runs
	if resp.Kind() == exchange.Later {
		resp = x.call.CarryOut(resp)
	}
	returned = true
}

var errGoexit = errors.New("the action ended its goroutine instead of returning")
