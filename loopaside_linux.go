package dunlin

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// planned is a response that goes on aside.
type planned struct {
	resp Response
	left time.Duration // of the limit on the action's time; 0: there is none
}

// mayStepAside reports whether the rest of the request can do without the input.
func (x *loopExchange) mayStepAside() bool {
	return x.inPlace && !x.streaming && x.stdBody == nil && (len(x.whole) == 0 || !x.request.s.Viewed)
}

// stepAside ends the action's part in a response that lasts, a stream of events: the rest
// gets a goroutine of its own, which has nothing on its stack but that.
func (x *loopExchange) stepAside(resp *Response) progress {
	p := &planned{resp: *resp}
	if x.d.Limited() {
		p.left = x.d.TimeLeft(0)
	}
	x.d.Leave()
	if x.d.Gone() {
		if !resp.a.Claim() {
			*resp = Response{}
		}
		x.request.leaveLimits() // in place of settle
		if x.request.suspended != nil {
			x.request.discard()
		}
		return x.dropLate(resp)
	}
	x.keepRequest()
	x.planned = p
	return goesAside
}

// Aside carries out a response that lasts.
func (h *loopHandler) Aside(d *engine.Driver, c *engine.Conn) {
	x := d.Scratch.(*loopExchange)
	x.use(d, c)
	x.given, x.moved = 0, true
	if x.count.away == nil {
		x.goAway()
	}
	resp, left := x.planned.resp, x.planned.left
	x.planned = nil
	if left > 0 {
		d.EnterFor(left)
	}
	h.app.settle(&x.request, &resp)
	d.Leave()
	if d.Gone() {
		x.dropLate(&resp)
		return
	}
	x.countAnswer(resp.a.Class())
	x.comeBack()
	if x.conclude(&resp) == moreRequests {
		c.SetDeadline(h.app.config.IdleTimeout)
	}
	x.flushCount()
}
