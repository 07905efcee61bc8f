//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// planned is the rest of a request: a response that continues in the background, a refusal that is sent there, or the protocol to
// which the connection switches after the response.
type planned struct {
	resp     exchange.Answer
	left     time.Duration     // rest of the action's timeout; 0: none
	refusal  error             // nil for a response
	protocol exchange.Protocol // nil for a response in the background
}

// mayMoveToBackground reports whether the rest of the request needs no input.
func (x *wire) mayMoveToBackground() bool {
	return x.inPlace && x.body == received && !x.StdReads() && (len(x.whole.Bytes) == 0 || !x.State.Viewed)
}

// moveToBackground ends the action of a long response, such as a stream of events. The response is made on another goroutine, whose
// stack is otherwise empty. waited reports whether the action has blocked its loop.
func (x *wire) moveToBackground(resp *exchange.Answer, waited bool) progress {
	p := &planned{resp: *resp}
	if x.d.HasTimeout() {
		p.left = x.d.TimeLeft(0)
	}
	if stayed := x.d.Leave(); stayed && !x.State.Route.NoRoute {
		x.State.Route.Blocking.Stayed(waited, x.d.Now())
	}
	if x.d.Expired() {
		x.Call.Drop(*resp)
		return x.drop()
	}
	x.keepRequest()
	x.planned = p
	return goesToBackground
}

// Background runs a long response, or refuses a request.
func (h *handler) Background(d *engine.Driver, c *engine.Conn) {
	x := d.Scratch.(*wire)
	x.use(d, c)
	if x.planned.refusal != nil {
		x.refuseApart()
		return
	}
	x.given, x.moved = 0, true
	account := c.Account()
	account.Force(memory.Input, exchange.BackgroundCost)
	defer account.Release(memory.Input, exchange.BackgroundCost)
	x.inFlight.Begin(x.count.On, &x.State.Route.Counts)
	resp, left := x.planned.resp, x.planned.left
	x.planned = nil
	if left > 0 {
		d.EnterFor(left)
	}
	resp = x.Call.Produce(resp)
	d.Leave()
	if d.Expired() {
		x.dropLate(&resp)
		return
	}
	x.countAnswer(&resp)
	x.inFlight.End()
	if x.conclude(&resp) == moreRequests {
		c.SetDeadline(h.server.IdleTimeout)
	}
	x.count.Flush(x.d)
}
