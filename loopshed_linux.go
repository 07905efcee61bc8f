package dunlin

import "github.com/dunlinhttp/dunlin/internal/admission"

// overdue reports whether the request has waited too long to be served.
func (x *loopExchange) overdue() bool {
	return x.d.Overdue() && (!x.request.s.Route.Critical)
}

// shed refuses an overdue request. No code of the user's runs.
func (x *loopExchange) shed() progress {
	x.handler.app.shed.Add(admission.QueueTime)
	return x.respondAlone(x.handler.late)
}

// respondAlone sends an answer that no action gave.
func (x *loopExchange) respondAlone(resp Response) progress {
	if x.d.Draining() {
		x.closing = true
	}
	x.countAnswer(resp.a.Class())
	x.respond(&resp.a)
	x.end()
	if x.closing {
		x.c.CloseLingering()
		return connectionOver
	}
	return moreRequests
}
