//go:build linux

package looph2

// A route learns from its answers how many bytes their clients leave unsent (Route.Pends), for the backlog of a connection: an
// estimate near the maximum that falls with each smaller value.
const (
	// muchPending is the number of unsent bytes from which a request may wait in the backlog.
	muchPending = 64 << 10
	// pendsDecay is the divisor of the part by which the estimate falls with each smaller answer.
	pendsDecay = 16
)

// left records how many bytes of an answer its client has not let out at once.
func (own *stream) left(n int64) {
	if own.route == nil {
		return
	}
	p := &own.route.Pends
	switch pends := p.Load(); {
	case n > muchPending && n > pends:
		p.Store(n)
	case n < pends && pends > muchPending:
		p.Add(-pends / pendsDecay)
	}
}

// charge charges a streamed answer, before it is made off the loop, for the bytes that it will be ahead of its client.
// Otherwise many could begin at once before any of them is known to hold memory. Long-lived answers mostly hold nothing.
func (x *Wire) charge(lasts, inline bool) {
	own := x.own
	if !lasts && inline && !x.toBackground {
		return
	}
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if lasts {
		own.endAhead()
		return
	}
	if own.ahead || own.headOnly || own.canceled || own.late {
		return
	}
	if a := own.accountOf(); a != nil {
		a.ForceAhead(streamRoom)
		own.ahead = true
	}
}

// endAhead ends the reservation for a streamed answer that begins: from now on the pending bytes are charged. s.mu is held.
func (own *stream) endAhead() {
	if own.ahead {
		own.ahead = false
		own.account.EndAhead()
	}
}

// keepAhead reduces the reservation for the answer to the given number of bytes that will be held of it: the answer is made, or
// there will be none. The reservation may include received bytes of the body, see transferInput. s.mu is held.
func (own *stream) keepAhead(most int) {
	if own.account == nil {
		return
	}
	if most = max(most, own.in.transferred); most == 0 {
		own.ahead = false
	}
	own.account.KeepAhead(int64(most))
}
