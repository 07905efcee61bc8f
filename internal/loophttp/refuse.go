//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// overdue reports whether the request has waited too long to be served.
func (x *wire) overdue() bool {
	return x.d.Overdue() && (!x.s.Route.Critical)
}

// shed refuses an overdue request.
func (x *wire) shed() progress {
	x.handler.server.Shed.Add(admission.QueueTime)
	return x.refuseWhole(x.handler.late, exchange.FromOverload)
}

// refuseWhole answers a request that is not begun.
func (x *wire) refuseWhole(resp exchange.Answer, source exchange.Source) progress {
	if x.d.Draining() {
		x.closing = true
	}
	x.countAnswer(&resp)
	x.answerAlone(resp, source)
	x.end()
	if x.closing {
		x.c.CloseLingering()
		return connectionOver
	}
	return moreRequests
}

// answerAlone sends an answer that no action made. Policies and observers run as
// actions do: a loop that they hold up is taken over.
func (x *wire) answerAlone(resp exchange.Answer, source exchange.Source) {
	if x.call.Hooked() {
		resp = x.amendAndObserve(resp, source)
	} else {
		resp = x.call.Amend(resp, source)
	}
	x.respond(&resp)
}

// amendAndObserve calls code of others, which may end its goroutine: also where that answers for an action
// that has, and nobody else would end what it may have begun.
func (x *wire) amendAndObserve(resp exchange.Answer, source exchange.Source) exchange.Answer {
	x.d.Enter()
	defer x.leave()
	resp = x.call.Amend(resp, source)
	if x.s.Watched {
		x.call.Observe(resp, x.took())
	}
	return resp
}

// observe tells who observes the answer, before it is sent.
func (x *wire) observe(resp exchange.Answer) {
	x.d.Enter()
	defer x.leave()
	x.call.Observe(resp, x.took())
}

// leave ends what d.Enter has begun, if it is not an action.
func (x *wire) leave() {
	if !x.d.Leave() {
		x.endInFlight()
		x.flushCount()
	}
}

// took returns how long the present request has taken.
func (x *wire) took() time.Duration { return time.Duration(x.d.Clock() - x.count.since) }

// knowHead makes what there is of a request known to those who observe its answer:
// nothing, or the head.
func (x *wire) knowHead(u *unfinished) {
	if u == nil || !u.complete {
		x.s.Set(x.head.Method.String(), "", "", false)
		x.call.Begin(false)
		return
	}
	u.head.CopyTo(&x.head, u.raw)
	x.readHead()
	x.call.Begin(true)
}

// keepHead makes what is refused known as knowHead does, when its memory is given back before
// it is answered: it is u, or lies in the input.
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
	x.call.Begin(true)
}

// parseWhole parses the head that a copy of the input begins with, and reports whether there is one.
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

// refuseApart carries out what Refused has left to a goroutine of its own. It takes none of
// the places of actions: who sends what there is no room for holds up no other's.
func (x *wire) refuseApart() {
	server := x.handler.server
	server.Refused.Add(1)
	x.closing, x.minor = true, 1
	resp := server.Pipeline.Answer(x.planned.refusal)
	x.countAnswer(&resp)
	x.flushCount()
	resp = x.call.Amend(resp, exchange.FromMemory)
	x.planned = nil
	if x.s.Watched {
		x.call.Observe(resp, x.took())
	}
	x.respond(&resp)
	x.call.End()
	x.c.CloseLingering()
}
