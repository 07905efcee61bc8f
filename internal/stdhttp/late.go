package stdhttp

import (
	"context"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// answerWithin does the work of the method answer for a route with a timeout. The action runs on its own goroutine,
// so that the goroutine of the request can answer before the action returns. In that case answerWithin returns
// false, and the wire belongs to the action.
func (x *wire) answerWithin(route *exchange.Route) bool {
	race := exchange.NewRace(x.Req.Context(), route.Timeout)
	defer race.Context.End(context.Canceled)
	x.Req, x.race = x.Req.WithContext(race.Context), race
	late, isHTTP1 := x.inCaseOfLate(), x.Req.ProtoMajor < 2
	count := x.count // the action may continue to use x
	x.count.shard = nil
	resp, isLate := race.Run(x.call, x.service.Pipeline)
	if !isLate {
		count.end(x.s, &resp)
		x.observe(resp)
		x.sendSettled(&resp)
		return true
	}
	resp = x.service.Pipeline.Late(route)
	count.end(late.s, &resp)
	if isHTTP1 { // an HTTP/2 connection has other streams
		late.w.Header().Set("Connection", "close")
	}
	late.call.InheritFrom(x.call)
	late.answerAlone(resp, exchange.FromTimeout)
	late.stopBody()
	return false
}

// inCaseOfLate returns a wire for an answer without the action. The action cannot change this wire.
func (x *wire) inCaseOfLate() *wire {
	late := &wire{service: x.service, w: x.w, StdHead: x.StdHead}
	if x.call.Hooked() {
		own := *x.Req
		own.Header = own.Header.Clone()
		late.Req = &own
	}
	late.call = x.service.Pipeline.NewCall(late)
	late.s = late.call.State()
	late.s.Set(x.s.Method, x.s.Path, x.s.Query, false)
	late.call.Begin(true)
	late.s.Route = x.s.Route
	return late
}
