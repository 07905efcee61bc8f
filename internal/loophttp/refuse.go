//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// overdue reports whether the request has waited longer than the queue allows.
func (x *wire) overdue() bool {
	return x.d.Overdue() && (!x.State.Route.Critical)
}

// shed refuses an overdue request.
func (x *wire) shed() progress {
	x.handler.server.Shed.Add(admission.QueueTime)
	return x.refuseWhole(x.handler.late, exchange.FromOverload)
}

// refuseWhole answers a complete request whose action has not begun.
func (x *wire) refuseWhole(resp exchange.Answer, source exchange.Source) progress {
	if x.d.Draining() {
		x.closing = true
	}
	x.countAnswer(&resp)
	x.answerAlone(resp, source)
	x.end()
	if x.closing {
		x.Conn.CloseLingering()
		return connectionOver
	}
	return moreRequests
}

// answerAlone sends an answer that no action made. Features run like actions: a loop that they block is taken over.
func (x *wire) answerAlone(resp exchange.Answer, source exchange.Source) {
	if x.Call.Hooked() {
		resp = x.amendAndObserve(resp, source)
	} else {
		resp = x.Call.Decorate(resp, source)
	}
	x.respond(&resp)
}

// amendAndObserve calls features and observers. They may end their goroutine; then the deferred leave ends the period that d.Enter
// has begun.
func (x *wire) amendAndObserve(resp exchange.Answer, source exchange.Source) exchange.Answer {
	x.d.Enter()
	defer x.leave()
	resp = x.Call.Decorate(resp, source)
	if x.State.Watched {
		x.Call.Observe(resp, x.took())
	}
	return resp
}

// observe passes the answer to its observers before it is sent.
func (x *wire) observe(resp exchange.Answer) {
	x.d.Enter()
	defer x.leave()
	x.Call.Observe(resp, x.took())
}

// leave ends the period that d.Enter has begun, outside of an action.
func (x *wire) leave() {
	if !x.d.Leave() {
		x.inFlight.End()
		x.count.Flush(x.d)
	}
}

// took returns the duration of the current request so far.
func (x *wire) took() time.Duration { return time.Duration(x.d.Clock() - x.count.Since) }

// knowHead begins a call for a request that is refused. Observers see the head if it is complete.
func (x *wire) knowHead(u *unfinished) {
	if u == nil || !u.complete {
		x.State.Set(x.head.Method.String(), "", "", false)
		x.Call.Begin(false)
		return
	}
	u.head.CopyTo(&x.head, u.raw)
	x.readHead()
	x.Call.Begin(true)
}

// keepHead is knowHead for a request whose memory, u or the input, is released before the answer. It copies the head.
func (x *wire) keepHead(u *unfinished, in []byte) {
	switch {
	case u != nil && u.complete:
		x.kept = append(x.kept[:0], u.raw...)
		u.head.CopyTo(&x.head, x.kept)
	case u == nil && x.parseWhole(in):
	default:
		x.head.Method = 0
		if u != nil {
			x.head.Method = u.head.Method
		}
		x.knowHead(nil)
		return
	}
	x.readHead()
	x.Call.Begin(true)
}

// parseWhole parses the head at the beginning of a copy of the input, and reports whether it is complete.
func (x *wire) parseWhole(in []byte) bool {
	x.kept = append(x.kept[:0], in[:min(len(in), x.handler.limits.MaxHead)]...)
	x.head.Reset()
	n, err := x.head.Parse(x.kept, &x.handler.limits)
	if n == 0 || err != nil {
		x.head.Reset()
		return false
	}
	return true
}

// refuseApart sends the refusal that Refused has moved to a goroutine of its own. It needs no permit of MaxConcurrent, so
// that clients over the memory budget delay no others.
func (x *wire) refuseApart() {
	server := x.handler.server
	server.Refused.Add(1)
	x.closing, x.minor = true, 1
	resp := server.Pipeline.Answer(x.planned.refusal)
	x.countAnswer(&resp)
	x.count.Flush(x.d)
	resp = x.Call.Decorate(resp, exchange.FromMemory)
	x.planned = nil
	if x.State.Watched {
		x.Call.Observe(resp, x.took())
	}
	x.respond(&resp)
	x.Call.End()
	x.Conn.CloseLingering()
}
