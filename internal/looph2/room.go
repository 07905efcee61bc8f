//go:build linux

package looph2

// left records the number of bytes of an answer that could not be sent at once.
func (own *stream) left(n int64) {
	if own.route != nil {
		own.route.Pended(n)
	}
}

// charge reserves memory for a streamed answer before it is made outside the loop: for the unsent bytes that it will hold. Without
// the reservation, many answers could begin at once before any of them is known to hold memory. Long-lived answers get no
// reservation, since they mostly hold nothing.
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
