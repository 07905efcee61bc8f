//go:build linux

package looph2

// left records how many bytes of an answer its client has not let out at once.
func (own *stream) left(n int64) {
	if own.route != nil {
		own.route.Pended(n)
	}
}

// charge charges a streamed answer, before it is made off the loop, for the bytes that it will be ahead of its client.
// Otherwise many could begin at once before any of them is known to hold memory. Long-lived answers mostly hold nothing.
func (x *Wire) charge(lasts, inline bool) {
	own := x.own
	if !lasts && inline && x.runs != leaving {
		return
	}
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if lasts {
		own.releaseReservation()
		return
	}
	if own.ahead || own.kind == headOnly || own.answer.canceled() || own.action.isLate() {
		return
	}
	if a := own.accountOf(); a != nil {
		a.ForceReserve(streamRoom)
		own.ahead = true
	}
}

// releaseReservation ends the reservation for a streamed answer that begins: from now on the pending bytes are charged. s.mu is held.
func (own *stream) releaseReservation() {
	own.ahead = false
	own.trimReservation(0)
}

// trimReservation reduces the reservation to limit bytes, the most that will be held for the answer: the answer is made, or
// there will be none. The reservation may include received bytes of the body, see transferInput. s.mu is held.
func (own *stream) trimReservation(limit int) {
	if own.account == nil {
		return
	}
	if limit = max(limit, own.in.transferred); limit == 0 {
		own.ahead = false
	}
	own.account.TrimReservation(int64(limit))
}
