//go:build linux

package loophttp

import (
	"context"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// The engine's driver enforces the timeout of an action (exchange/late.go), which applies only to an action that has lost its loop.
// After the timeout, the engine passes the connection from the late driver to a new driver, which answers (Expired). The answer of
// the late action is dropped (dropLate). The driver's claim decides whether the action or the late answer has the connection. An
// answer that begins lifts the timeout permanently. An action that uses the connection before that holds a claim,
// which delays the timeout.

// liftTimeout lifts the timeout of the action because the answer begins. It returns false if the late answer already has the
// connection.
func (x *wire) liftTimeout() bool {
	if !x.d.LiftTimeout() {
		return false
	}
	if timed := x.Timed(); timed != nil {
		timed.Lift()
	}
	return true
}

// claim prevents the late answer from taking the connection until unclaim. It returns false if the late answer already has the
// connection. A reader and a writer may hold a claim at the same time.
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

// Expiring copies to fresh the state that the late answer needs. The action, which runs, does not change this state.
func (from *wire) Expiring(fresh engine.Scratch) {
	x := fresh.(*wire)
	if from.Call.Hooked() {
		x.kept = append(x.kept[:0], from.head.Bytes()...)
		from.head.CopyTo(&x.head, x.kept)
		x.readHead()
		x.Call.Begin(true)
	} else {
		x.State.Set(semantics.MethodOf(from.State.Method).String(), "", "", false)
	}
	x.minor, x.head.Method, x.State.Route = from.minor, from.head.Method, from.State.Route
	x.Call.InheritFrom(from.Call)
	x.count.Since = from.count.Since
	if timed := from.Timed(); timed != nil {
		timed.End(context.DeadlineExceeded)
	}
	from.inFlight.End()
}

// Expired answers for an action that exceeded its timeout and may still run.
func (h *handler) Expired(d *engine.Driver, c *engine.Conn) {
	x := d.Scratch.(*wire)
	x.use(d, c)
	x.closing = true
	resp := h.server.Pipeline.Late(x.State.Route)
	x.countAnswer(&resp)
	x.count.Flush(x.d)
	x.answerAlone(resp, exchange.FromTimeout)
	x.Call.End()
	c.CloseLingering()
}

// dropLate discards the response of a late action. The connection belongs to another driver.
func (x *wire) dropLate(resp *exchange.Answer) progress {
	resp.Release()
	return x.drop()
}

// drop ends a request that was answered without its action.
func (x *wire) drop() progress {
	x.end()
	return connectionOver
}
