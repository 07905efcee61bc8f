package admission

import "time"

const (
	// roomWait is the time, in ns, that a holder of more than Fair waits before a holder that is not much costlier is evicted
	// for it. mostWait is the maximum wait.
	roomWait = int64(time.Second)
	mostWait = int64(10 * time.Second)

	// muchCostlier is the factor of cost at which a holder is evicted at once for one that holds more than Fair. provenAfter is
	// the time, in ns, for which it must have held something.
	muchCostlier = 8
	provenAfter  = int64(time.Second)

	// Waiting holders poll less often the more of them there are (see pause). Otherwise a crowd would occupy the processors at
	// each release. Up to askFreely waiters are woken at once.
	askPause  = 50 * time.Microsecond
	askFreely = 64

	// takeAgain is the number of evictions for one small holder: memory that others release for it can be reserved by any
	// account in between.
	takeAgain = 8

	// smallShare is the divisor of the budget that large reservations leave to small holders. slackShare is that of the
	// permitted excess, see slack.
	smallShare = 4
	slackShare = 8
)

// An Outcome is the result of a request for memory.
type Outcome uint8

const (
	Granted  Outcome = iota
	MustWait         // ask again after a release, or soon
	NoRoom
)

// Reserve requests n bytes for a use before they are filled. A holder that must wait asks again, and calls Unwait if it gives
// up.
func (a *Account) Reserve(u Use, n int64) Outcome {
	outcome := a.reserve(u, n)
	if outcome != MustWait {
		a.Unwait()
	}
	if outcome == NoRoom {
		a.holders.budget.refused.Add(1)
	}
	return outcome
}

// ReserveBody is Reserve for the complete size so far of a request's body. It uses the reservation for the response first,
// which is mostly made after the body is no longer needed, or is the body itself. Otherwise requests that hold the one would
// wait for each other to get the other.
func (a *Account) ReserveBody(capacity int64) Outcome {
	return a.ReserveGrowing(capacity, capacity, capacity)
}

// ReserveGrowing is ReserveBody for a body with an announced length (-1: unknown) and a maximum of most bytes, see line.go.
func (a *Account) ReserveGrowing(capacity, announced, most int64) Outcome {
	a.mu.Lock()
	more := capacity + a.beside - a.body
	if more <= 0 {
		a.mu.Unlock()
		return Granted
	}
	a.unknown = announced < 0
	ahead := min(a.ahead, more)
	if ahead > 0 && !a.group.take(Body, ahead, a.holders.MaxConnection) {
		a.met = PartsCap
		a.mu.Unlock()
		a.Unwait()
		a.holders.budget.refused.Add(1)
		return NoRoom
	}
	a.ahead -= ahead
	a.body += ahead
	a.mu.Unlock()
	a.holders.budget.change(Output, Body, ahead)
	if more -= ahead; more == 0 {
		return Granted
	}
	if announced < 0 {
		a.holders.grows(a, most)
	}
	outcome := a.Reserve(Body, more)
	if outcome == Granted {
		a.mu.Lock()
		a.body += more
		a.mu.Unlock()
		if announced < 0 {
			a.holders.grows(a, most)
		}
	}
	return outcome
}

// ReserveAhead is Reserve for output that is about to be held. Force takes from the reservation until EndAhead.
func (a *Account) ReserveAhead(n int64) Outcome {
	outcome := a.Reserve(Output, n)
	if outcome == Granted {
		a.makes(n)
	}
	return outcome
}

// makes records that a response is being made with n more reserved bytes. It is not evicted until its peer is to read it, or
// the server waits for the peer.
func (a *Account) makes(n int64) {
	if a.reserved(n) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.making = a.answers == 0
	}
}

// reserved records that n bytes held for output are a reservation. For an account that was closed meanwhile they are released.
func (a *Account) reserved(n int64) bool {
	a.mu.Lock()
	closed := a.closed
	if !closed {
		a.ahead += n
	}
	a.mu.Unlock()
	if closed {
		a.Release(Output, n)
	}
	return !closed
}

// Complete records that the body has been read completely. The server works from here on, see Working.
func (a *Account) Complete() bool {
	a.endsBody()
	return a.Working(true)
}

// ReserveHeld is ReserveAhead for n bytes that the account holds already for a use that is about to end.
func (a *Account) ReserveHeld(u Use, n int64) {
	a.holders.budget.change(u, Output, n)
	a.group.note(u, -n)
	a.group.note(Output, n)
	a.reserved(n)
}

// ForceAhead reserves n bytes for output that is about to be held and cannot be refused.
func (a *Account) ForceAhead(n int64) {
	a.Force(Output, n)
	a.reserved(n)
}

// ReserveFirst is ReserveAhead for an account whose address holds nothing else: it may use all free memory, also the share of
// small holders, so that an unknown client does not wait behind large holders. It does not wait and causes no eviction.
func (a *Account) ReserveFirst(n int64) bool {
	h := a.holders
	if !a.source.known || a.source.held.Load() != a.Held() || a.Ending() || !h.take(a, Output, n, 0) {
		return false
	}
	a.Unwait()
	a.makes(n)
	return true
}

// EndRequest turns the memory of ReserveBody into a reservation for the response, which may be unread. No other account can get
// the memory in between.
func (a *Account) EndRequest() {
	a.endsBody()
	a.mu.Lock()
	body, closed := a.body, a.closed
	a.body, a.beside = 0, 0
	if !closed {
		a.ahead += body
	}
	a.mu.Unlock()
	if closed {
		a.Release(Body, body)
	} else {
		a.holders.budget.change(Body, Output, body)
		a.group.note(Body, -body)
	}
}

// EndAhead releases the reservation for output and the promise.
func (a *Account) EndAhead() {
	a.EndProbe()
	a.mu.Lock()
	ahead := a.ahead
	a.ahead, a.making = 0, false
	a.mu.Unlock()
	if ahead != 0 {
		a.Release(Output, ahead)
	}
}

// KeepAhead releases the reservation and the promise beyond most bytes: the response is complete and will hold no more. With 0
// it is EndAhead.
func (a *Account) KeepAhead(most int64) {
	if most == 0 {
		a.EndAhead()
		return
	}
	a.mu.Lock()
	promised, ahead := max(a.promised-most, 0), max(a.ahead-most, 0)
	a.promises().Add(-promised)
	a.promised -= promised
	a.ahead -= ahead
	a.mu.Unlock()
	if ahead > 0 {
		a.Release(Output, ahead)
	} else if promised > 0 {
		a.holders.signal()
	}
}

func (a *Account) reserve(u Use, n int64) Outcome {
	h := a.holders
	a.mu.Lock()
	after, ending, waits := a.held.Load()+n, a.ending || a.closed, a.waits
	if !ending {
		a.met = NoCap
	}
	a.mu.Unlock()
	bound := h.budget.Bound()
	if !ending && h.overAddress(a, n) > 0 {
		h.makeRoomAt(a, n)
	}
	over := h.overConnection(a, u, n)
	switch {
	case ending:
		return NoRoom
	case bound > 0 && after > bound:
		a.meets(BudgetCap)
		return NoRoom
	case over != NoCap:
		a.meets(over)
		return NoRoom
	case h.MaxAddress > 0 && after > h.MaxAddress && u != Output || after <= leastShare && h.overAddress(a, n) > 0:
		a.meets(AddressCap)
		return NoRoom
	case after <= leastShare:
		if h.take(a, u, n, h.ending.Load()) {
			return Granted
		}
		for made, tries := true, 0; made && tries < takeAgain; tries++ {
			made, _ = h.makeRoom(a, n, 0)
			if h.take(a, u, n, h.ending.Load()+h.slack()) {
				return Granted
			}
		}
		return NoRoom
	case u == Body && h.growsBehind(a, n, waits):
	case after <= h.Fair():
		if h.takeMuch(a, u, n, h.ending.Load()) {
			return Granted
		}
		_, _ = h.makeRoom(a, n, 0)
		if h.takeMuch(a, u, n, h.ending.Load()) {
			return Granted
		}
	case (u != Body || !h.leaves(a, n)) && h.takeMuch(a, u, n, 0):
		return Granted
	}
	return h.wait(a, u, n, waits)
}

// wait makes an account wait for memory, since waits, and evicts much costlier holders.
func (h *Holders) wait(a *Account, u Use, n, waits int64) Outcome {
	now := h.now()
	if waits == 0 {
		waits = now
		modest := !h.greedy(a.source, n) || a.source.held.Load() == a.Held()
		a.mu.Lock()
		a.waits, a.modest = now, modest
		a.stop(now)
		a.mu.Unlock()
		if h.waiting.Add(1) == 1 {
			h.waitSince.Store(max(now, 1))
		}
		if modest {
			h.modest.Add(1)
		}
	}
	a.takeTurn()
	if u == Body {
		h.lineUp(a, n)
	}
	waited := now - waits
	times := float64(muchCostlier)
	if waited >= roomWait {
		times = 1
	}
	capped := h.overAddress(a, n) > 0
	if !capped && !h.yields(a, n) {
		if _, costliest := h.makeRoom(a, n, times); costliest {
			return NoRoom
		}
	}
	if waited >= mostWait {
		if capped {
			a.meets(AddressCap)
		}
		return NoRoom
	}
	for want := h.want.Load(); n < want && !h.want.CompareAndSwap(want, n); want = h.want.Load() {
	}
	if (u != Body || !h.leaves(a, n)) && h.takeMuch(a, u, n, 0) { // released meanwhile
		return Granted
	}
	return MustWait
}

// lineUp enters an account that waits for n bytes of a body into the line.
func (h *Holders) lineUp(a *Account, n int64) {
	a.mu.Lock()
	modest := a.modest
	a.mu.Unlock()
	h.line.mu.Lock()
	rest := a.line.rest
	h.line.mu.Unlock()
	h.line.enter(a, modest, n, rest)
}

// Unwait ends the account's wait for memory.
func (a *Account) Unwait() {
	a.mu.Lock()
	lined := a.waits != 0 && a.lined
	a.unwait()
	grows := a.unknown && !a.closed
	a.mu.Unlock()
	if lined {
		a.holders.line.stay(a, grows)
	}
}

// unwait is Unwait with a.mu held.
func (a *Account) unwait() {
	a.comes(false)
	if a.waits == 0 {
		return
	}
	a.waits = 0
	a.start(a.holders.now())
	since := a.holders.waitSince.Load()
	if a.holders.waiting.Add(-1) == 0 {
		a.holders.waitSince.CompareAndSwap(since, 0) // unless another one waits by now
	}
	if a.modest {
		a.modest = false
		a.holders.modest.Add(-1)
	}
	if a.turn {
		a.turn = false
		a.group.turn.Store(false)
	}
}

// Refuse is Unwait for an account that must not wait and is refused.
func (a *Account) Refuse() Outcome {
	a.Unwait()
	a.holders.budget.refused.Add(1)
	return NoRoom
}

// AcquireBody is ReserveGrowing for callers that may block: it returns when the bytes are granted or refused, or with MustWait
// when over reports that the result is no longer needed. over is called when done is closed, and periodically.
func (a *Account) AcquireBody(capacity, announced, most int64, done <-chan struct{}, over func() bool) Outcome {
	return a.Acquire(func() Outcome { return a.ReserveGrowing(capacity, announced, most) }, done, over)
}

// Acquire is AcquireBody for any reservation.
func (a *Account) Acquire(reserve func() Outcome, done <-chan struct{}, over func() bool) Outcome {
	look := time.NewTicker(time.Duration(roomWait / 4)) // independent of releases
	defer look.Stop()
	for {
		room := a.holders.room()
		if outcome := reserve(); outcome != MustWait {
			return outcome
		}
		if pause := a.holders.pause(); pause > 0 {
			select {
			case <-time.After(pause):
			case <-done:
			}
		}
		select {
		case <-room:
			continue
		case <-look.C:
		case <-done:
			done = nil
		}
		if over() {
			a.Unwait()
			return MustWait
		}
	}
}

// pause returns the time for which a waiting account that has asked is not woken.
func (h *Holders) pause() time.Duration {
	n := h.Waiting()
	if n <= askFreely {
		return 0
	}
	return min(time.Duration(n)*askPause, time.Duration(roomWait/4))
}

// take reserves n bytes if they fit, with a bound larger by beyond bytes.
func (h *Holders) take(a *Account, u Use, n, beyond int64) bool {
	if h.MaxAddress > 0 {
		h.capping.Lock()
		defer h.capping.Unlock()
		if !h.fitsAddress(a, n) {
			return false
		}
	}
	if !h.budget.reserve(u, n, beyond+h.spared.Load()) {
		return false
	}
	if !a.group.take(u, n, h.MaxConnection) { // others of the group were first
		h.budget.Release(u, n)
		h.signal()
		a.meets(PartsCap)
		return false
	}
	a.add(n)
	return true
}

// takeMuch is take for an account that becomes a large holder. All large holders together leave smallShare of the budget to
// others, unless there is only one.
func (h *Holders) takeMuch(a *Account, u Use, n, beyond int64) bool {
	h.taking.Lock()
	defer h.taking.Unlock()
	return !h.yields(a, n) && h.overMuch(a, n) <= 0 && h.take(a, u, n, beyond)
}

// greedy reports whether an address would hold more than half of the budget with n more bytes.
func (h *Holders) greedy(s *source, n int64) bool {
	return s.known && s.held.Load()+n > h.budget.Bound()/2
}

// yields reports whether an account must leave the free memory to accounts that wait at modest addresses, or whose group holds
// little else. They precede all requests of a greedy address, except the first of the line of bodies.
func (h *Holders) yields(a *Account, n int64) bool {
	if h.modest.Load() == 0 || !h.greedy(a.source, n) {
		return false
	}
	a.mu.Lock()
	modest := a.modest
	a.mu.Unlock()
	return !modest && !h.line.leads(a)
}

// overMuch returns the bytes by which large holders would exceed their share with n more bytes for a.
func (h *Holders) overMuch(a *Account, n int64) int64 {
	bound := h.budget.Bound()
	if bound <= 0 {
		return 0
	}
	a.mu.Lock()
	has, after := a.much, a.held.Load()+n
	a.mu.Unlock()
	others := h.much.Load() - has
	if others <= 0 || after <= leastShare {
		return 0
	}
	return others + after - h.forMuch()
}

// forMuch returns the part of the budget for large holders.
func (h *Holders) forMuch() int64 { return h.budget.Bound() - h.budget.Bound()/smallShare }

// slack returns the bytes by which the bound may be exceeded instead of evicting a holder that would finish soon.
func (h *Holders) slack() int64 { return h.budget.Bound() / slackShare }

// over returns the bytes by which the budget would be exceeded with n more, after all current evictions.
func (h *Holders) over(n int64) int64 {
	bound := h.budget.Bound()
	if bound <= 0 {
		return 0
	}
	cached := h.budget.HeldFor(InCache) // caches are dropped without an eviction
	return h.budget.Held() + n - cached - h.ending.Load() - h.spared.Load() - bound
}

// overFor is over for n more bytes of an account, which may be nil.
func (h *Holders) overFor(a *Account, n int64) int64 {
	over := h.over(n)
	if a != nil && n > 0 {
		over = max(over, h.overMuch(a, n))
	}
	return over
}

// balance evicts holders for memory that a was forced to hold.
func (h *Holders) balance(a *Account, u Use) {
	if over := h.overConnection(a, u, 0); over != NoCap {
		a.meets(over)
		h.end(a)
		return
	}
	if h.overAddress(a, 0) > 0 {
		h.makeRoomAt(a, 0)
	}
	if h.over(0) > 0 {
		_, _ = h.makeRoom(a, 0, 0)
	}
}

// Balance evicts holders for memory that the server itself has reserved.
func (h *Holders) Balance() {
	if h.over(0) > 0 {
		_, _ = h.makeRoom(nil, 0, 0)
	}
}

// makeRoom evicts holders until there is room for n more bytes, or no candidate is left. times is 0 for a small asker, for
// which all large holders are candidates; otherwise only slow holders that cost times as much are. It reports whether there is
// room then, which other accounts may take first, and whether the asker itself is the costliest. The asker is not evicted then,
// unless n is 0: memory that it was forced to hold cannot be refused.
func (h *Holders) makeRoom(asker *Account, n int64, times float64) (made, costliest bool) {
	var ends [8]*Account
	for more := true; more && !costliest; {
		k, again := 0, false
		h.mu.Lock()
		h.list(n, times)
		for h.overFor(asker, n) > 0 && k < len(ends) && !costliest {
			v := h.victim(asker, n, times, k)
			if v == nil {
				again = times == 0 && k > 0 && !h.listed
				break
			}
			if v == asker && n > 0 {
				costliest = true
			} else if h.markEnding(v) {
				ends[k] = v
				k++
				if h.lone == nil {
					h.sparedIs(h.oversized())
				}
			}
		}
		more = k == len(ends) || again
		made = h.overFor(asker, n) <= 0
		h.mu.Unlock()
		for _, v := range ends[:k] {
			h.ended.Add(1)
			v.holder.End(v)
		}
	}
	return made, costliest
}

// end evicts one holder.
func (h *Holders) end(a *Account) {
	h.mu.Lock()
	first := h.markEnding(a)
	h.mu.Unlock()
	if first {
		h.ended.Add(1)
		a.holder.End(a)
		h.signal()
	}
}

// markEnding marks an account for eviction, and returns false if it was marked or is closed. h.mu is held.
func (h *Holders) markEnding(a *Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending || a.closed {
		return false
	}
	a.ending, a.counted = true, false
	h.ending.Add(a.held.Load())
	a.source.ending.Add(a.held.Load())
	if a.lone {
		h.spared.Add(-a.held.Load())
		a.lone, h.lone = false, nil
	}
	a.weigh()
	return true
}
