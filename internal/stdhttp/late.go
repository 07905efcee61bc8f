package stdhttp

import (
	"context"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// answerWithin is answer for a route with a timeout: the action gets a goroutine
// of its own, so that this one can answer without it. It is false if it has: then the
// wire is the action's.
func (x *wire) answerWithin(route *exchange.Route) bool {
	race := exchange.NewRace(x.Req.Context(), route.Timeout)
	defer race.Context.End(context.Canceled)
	x.Req, x.race = x.Req.WithContext(race.Context), race
	late, alone := x.inCaseOfLate(), x.Req.ProtoMajor < 2
	count := x.count // x may be the action's for longer
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
	if alone { // of HTTP/2 the others of the connection have nothing to do with it
		late.w.Header().Set("Connection", "close")
	}
	late.call.Succeed(x.call)
	late.answerAlone(resp, exchange.FromTimeout)
	late.stopBody()
	return false
}

// inCaseOfLate returns the wire for the answer that is given without the action: it
// has nothing that the action may change.
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
