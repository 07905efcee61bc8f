package dunlin

import "github.com/dunlinhttp/dunlin/internal/engine"

// mayStepAside reports whether the rest of the request can do without the input.
func (x *loopExchange) mayStepAside() bool {
	return x.inPlace && !x.streaming && x.stdBody == nil && (len(x.whole) == 0 || !x.request.viewed)
}

// stepAside ends the action's part in a response that lasts, a stream of events: the rest
// gets a goroutine of its own, which has nothing on its stack but that.
func (x *loopExchange) stepAside(resp *Response) progress {
	x.d.Leave()
	if x.d.Gone() {
		if !resp.a.Claim() {
			*resp = Response{}
		}
		x.request.leaveLimits() // in place of settle
		return x.dropLate(resp)
	}
	x.keepRequest()
	x.planned = *resp
	return goesAside
}

// Aside carries out a response that lasts.
func (h *loopHandler) Aside(d *engine.Driver, c *engine.Conn) {
	x := d.Scratch.(*loopExchange)
	x.use(d, c)
	x.given, x.moved = 0, true
	x.count.since = d.Now()
	if x.count.away == nil {
		x.goAway()
	}
	resp := x.planned
	x.planned = Response{}
	h.app.settle(&x.request, &resp)
	x.countAnswer(resp.a.Class())
	x.comeBack()
	if x.conclude(&resp) == moreRequests {
		c.SetDeadline(h.app.config.IdleTimeout)
	}
	x.flushCount()
}
