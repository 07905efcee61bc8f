//go:build linux

package loophttp

import (
	"context"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A timeout on an action's time (exchange/late.go) is kept by the engine's driver, since it holds only for an action
// that has lost its loop. When it has passed, the engine takes the connection from the driver and gives it to a fresh
// one, which answers (Expired). What the late action makes then is dropped (dropLate). Who of both has the connection
// is decided by the driver's claim: an answer that begins lifts the timeout for good, what goes to the client before
// that holds it off.

// liftTimeout lifts a timeout on the action's time, because the answer begins; false if
// the connection was taken from it.
func (x *wire) liftTimeout() bool {
	if !x.d.LiftTimeout() {
		return false
	}
	if timed, ok := x.ctx.(*exchange.TimeoutContext); ok {
		timed.Lift()
	}
	return true
}

// claim keeps the action's timeout from taking the connection until
// unclaim; false if it has. Reading and writing may both claim it.
func (x *wire) claim() bool {
	if x.claims == 0 && !x.d.Claim() {
		return false
	}
	x.claims++
	return true
}

func (x *wire) unclaim() {
	if x.claims--; x.claims == 0 {
		x.d.Release()
	}
}

// Expiring notes what the answer for an action that took too long depends on;
// none of it is changed by an action.
func (h *handler) Expiring(late, fresh any) {
	from, x := late.(*wire), fresh.(*wire)
	if from.call.Hooked() {
		x.kept = append(x.kept[:0], from.head.Bytes()...)
		from.head.CopyTo(&x.head, x.kept)
		x.readHead()
		x.call.Begin(true)
	} else {
		x.s.Set(http1.MethodOf(from.s.Method).String(), "", "", false)
	}
	x.minor, x.head.Method, x.s.Route = from.minor, from.head.Method, from.s.Route
	x.call.Succeed(from.call)
	x.count.since = from.count.since
	if timed, ok := from.ctx.(*exchange.TimeoutContext); ok {
		timed.End(context.DeadlineExceeded)
	}
	from.endInFlight()
}

// Expired answers for an action that took too long, and may still run.
func (h *handler) Expired(d *engine.Driver, c *engine.Conn) {
	x := d.Scratch.(*wire)
	x.use(d, c)
	x.closing = true
	resp := h.server.Pipeline.Late(x.s.Route)
	x.countAnswer(&resp)
	x.flushCount()
	x.answerAlone(resp, exchange.FromTimeout)
	x.call.End()
	c.CloseLingering()
}

// dropLate discards a response whose request was answered without it. The
// connection is another driver's now.
func (x *wire) dropLate(resp *exchange.Answer) progress {
	resp.Release()
	return x.drop()
}

// drop ends a request that was answered without its action.
func (x *wire) drop() progress {
	x.expired = true
	x.end()
	return connectionOver
}
