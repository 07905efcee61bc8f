package admission

import (
	"cmp"
	"slices"
	"time"
)

const (
	// roomWait is for how long a holder of more than Fair waits, in ns, before somebody is
	// ended for it who is not much costlier, and mostWait for how long at all.
	roomWait = int64(time.Second)
	mostWait = int64(10 * time.Second)

	// muchCostlier is by how much another must be costlier to be ended at once for one that
	// holds more than Fair, and provenAfter for how long it must have held something, in ns.
	muchCostlier = 8
	provenAfter  = int64(time.Second)

	// listLife is how long a list of the costliest is good for, in ns, and mostListed its
	// length: so that choosing costs little however many there are.
	listLife   = int64(20 * time.Millisecond)
	mostListed = 32
)

// An Outcome is what becomes of a wish for memory.
type Outcome uint8

const (
	Granted  Outcome = iota
	MustWait         // ask again when something was given back, or soon
	NoRoom
)

// Reserve asks for n bytes for a use, before they are filled. A holder that must wait asks
// again, and calls Unwait if it does not.
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

// ReserveBody is Reserve for what is read in of a request's body, in all so far: the account
// knows how much that is.
func (a *Account) ReserveBody(capacity int64) Outcome {
	more := capacity - a.Body()
	if more <= 0 {
		return Granted
	}
	outcome := a.Reserve(Body, more)
	if outcome == Granted {
		a.mu.Lock()
		a.body += more
		a.mu.Unlock()
	}
	return outcome
}

// Body returns the bytes reserved by ReserveBody.
func (a *Account) Body() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.body
}

// ReserveAhead is Reserve for output that will be held in a moment, and charged by itself
// then. The account may have one such reservation.
func (a *Account) ReserveAhead(n int64) Outcome {
	outcome := a.Reserve(Output, n)
	if outcome == Granted {
		a.mu.Lock()
		a.ahead = n
		a.mu.Unlock()
	}
	return outcome
}

// EndRequest gives back what ReserveBody and ReserveAhead have granted.
func (a *Account) EndRequest() {
	a.mu.Lock()
	body, ahead := a.body, a.ahead
	a.body, a.ahead = 0, 0
	a.mu.Unlock()
	a.Release(Body, body)
	a.Release(Output, ahead)
}

func (a *Account) reserve(u Use, n int64) Outcome {
	h := a.holders
	a.mu.Lock()
	after, ending, waits := a.held.Load()+n, a.ending || a.closed, a.waits
	a.mu.Unlock()
	bound := h.budget.Bound()
	switch {
	case ending || bound > 0 && after > bound || h.overCap(a, after, n):
		return NoRoom
	case after <= h.Fair():
		if h.take(a, u, n, h.leaving.Load()) {
			return Granted
		}
		h.makeRoom(a, n, 0)
		if h.take(a, u, n, h.leaving.Load()) {
			return Granted
		}
		return NoRoom
	case h.take(a, u, n, 0):
		return Granted
	}
	now := h.now()
	if waits == 0 {
		waits = now
		a.mu.Lock()
		a.waits = now
		a.stop(now)
		a.mu.Unlock()
		h.waiting.Add(1)
	}
	waited := now - waits
	times := float64(muchCostlier)
	if waited >= roomWait {
		times = 1
	}
	if costliest := h.makeRoom(a, n, times); costliest || waited >= mostWait {
		return NoRoom
	}
	for want := h.want.Load(); n < want && !h.want.CompareAndSwap(want, n); want = h.want.Load() {
	}
	if h.take(a, u, n, 0) { // given back meanwhile
		return Granted
	}
	return MustWait
}

// Unwait ends the wait for room of an account.
func (a *Account) Unwait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits == 0 {
		return
	}
	a.waits = 0
	a.start(a.holders.now())
	a.holders.waiting.Add(-1)
}

// AcquireBody is ReserveBody for those who can wait: it returns when the bytes are granted or
// refused, or with false when done is closed.
func (a *Account) AcquireBody(capacity int64, done <-chan struct{}) bool {
	var timer *time.Timer
	for {
		room := a.holders.room()
		switch a.ReserveBody(capacity) {
		case Granted:
			return true
		case NoRoom:
			return false
		}
		if timer == nil {
			timer = time.NewTimer(time.Duration(roomWait / 4))
			defer timer.Stop()
		} else {
			timer.Reset(time.Duration(roomWait / 4))
		}
		select {
		case <-room:
		case <-timer.C:
		case <-done:
			a.Unwait()
			return false
		}
	}
}

// take takes n bytes if they fit, with so many bytes beyond the bound.
func (h *Holders) take(a *Account, u Use, n, beyond int64) bool {
	if !h.budget.reserve(u, n, beyond+h.spared.Load()) {
		return false
	}
	a.add(n)
	return true
}

// over returns by how many bytes the budget would be exceeded by n more, when all have gone
// that are being ended.
func (h *Holders) over(n int64) int64 {
	bound := h.budget.Bound()
	if bound <= 0 {
		return 0
	}
	return h.budget.Held() + n - h.leaving.Load() - h.spared.Load() - bound
}

// overCap reports whether an account that holds so many bytes, the last n of them new, has
// more than one connection or its address may have.
func (h *Holders) overCap(a *Account, held, n int64) bool {
	return h.MaxConnection > 0 && held > h.MaxConnection ||
		h.MaxAddress > 0 && a.source.known && a.source.held.Load()+n > h.MaxAddress
}

// balance makes room for what a has been forced to hold.
func (h *Holders) balance(a *Account) {
	if h.MaxConnection > 0 || h.MaxAddress > 0 {
		if h.overCap(a, a.Held(), 0) {
			h.end(a)
			return
		}
	}
	if h.over(0) > 0 {
		h.makeRoom(a, 0, 0)
	}
}

// Balance makes room for what was taken from the budget for the server itself.
func (h *Holders) Balance() {
	if h.over(0) > 0 {
		h.makeRoom(nil, 0, 0)
	}
}

// makeRoom ends holders until there is room for n more bytes, or nobody is left to be
// ended. times says for whom room is made: 0 is one who holds little, for whom everybody
// does who holds much; for another only those do who cost so many times as much. It reports
// whether the asker itself is the costliest, who is not ended then: unless n is 0, since
// what it has been forced to hold cannot be refused.
func (h *Holders) makeRoom(asker *Account, n int64, times float64) (costliest bool) {
	var ends [8]*Account
	for more := true; more && !costliest; {
		k := 0
		h.mu.Lock()
		h.list(n, times)
		for h.over(n) > 0 && k < len(ends) && !costliest {
			v := h.victim(asker, n, times)
			if v == nil {
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
		more = k == len(ends)
		h.mu.Unlock()
		for _, v := range ends[:k] {
			h.ended.Add(1)
			v.holder.End(v)
		}
	}
	return costliest
}

// end ends one holder.
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

// markEnding marks an account, and reports false if it was marked or is closed. h.mu is held.
func (h *Holders) markEnding(a *Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending || a.closed {
		return false
	}
	a.ending = true
	h.leaving.Add(a.held.Load())
	if a.lone {
		h.spared.Add(-a.held.Load())
		a.lone, h.lone = false, nil
	}
	return true
}

// A candidate is an account that might be ended, and why it before others.
type candidate struct {
	account *Account
	held    int64 // by its address, if that decides; else 0
	cost    float64
	since   int64
}

// victim returns the next account to be ended; nil if there is none. h.mu is held.
func (h *Holders) victim(asker *Account, n int64, times float64) *Account {
	for range 2 {
		for len(h.next) > 0 {
			a := h.next[len(h.next)-1].account
			switch h.judge(a, asker, times) {
			case isVictim:
				h.next = h.next[:len(h.next)-1]
				return a
			case nobodyIs:
				return nil
			}
			h.next = h.next[:len(h.next)-1]
		}
		if times > 0 {
			return nil // it asks again
		}
		h.nextAt = 0
		h.list(n, times)
	}
	if n == 0 && asker != nil && !asker.Ending() {
		return asker // there is nobody else
	}
	return nil
}

// What a candidate is found to be.
const (
	isNone = iota // it is not to be ended any more
	isVictim
	nobodyIs // it costs too little, and so do the others
)

// judge looks at a candidate anew. h.mu is held.
func (h *Holders) judge(a, asker *Account, times float64) int {
	now := h.now()
	least := 0.0
	if times > 1 {
		if a == asker {
			return nobodyIs
		}
		asker.mu.Lock()
		least = times * asker.cost(now)
		asker.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch held := a.held.Load(); {
	case a.ending || a.closed || held == 0 || a.working && a != asker:
		return isNone
	case !h.all && held <= h.Fair():
		return isNone
	case times > 1 && (now-a.since < provenAfter || a.cost(now) <= least):
		return nobodyIs
	}
	return isVictim
}

// list finds those that are to be ended next, unless that is known: of those that hold more
// than Fair the costliest; if one address holds more than half of the budget, and it is not
// the only one, then of that address. Only if nobody does, and the asker is not one who can
// wait, it is those of the address that holds most. h.mu is held.
func (h *Holders) list(n int64, times float64) {
	now := h.now()
	fresh := h.nextAt != 0 && now-h.nextAt < listLife && (times > 0 || len(h.next) > 0)
	if fresh && !(h.all && (times > 0 || h.anyLarge())) {
		return
	}
	h.next, h.nextAt, h.all = h.next[:0], now, false
	fair, bound := h.Fair(), h.budget.Bound()
	var most *source
	several := false
	for _, a := range h.large {
		several = several || most != nil && a.source != most
		if most == nil || a.source.held.Load() > most.held.Load() {
			most = a.source
		}
	}
	h.sparedIs(h.oversized())
	greedy := several && most.known && most.held.Load() > bound/2
	for range 2 {
		for _, a := range h.large {
			if a.held.Load() > fair && (!greedy || a.source == most) {
				h.consider(a, 0, now)
			}
		}
		if !greedy || len(h.next) > 0 {
			break
		}
		greedy = false // it does so by many small ones
	}
	if len(h.next) == 0 && times == 0 && h.over(n) > 0 {
		h.listSmall(now)
	}
	slices.SortFunc(h.next, compareCandidates)
}

// anyLarge reports whether somebody holds more than Fair who may be ended. h.mu is held.
func (h *Holders) anyLarge() bool {
	fair := h.Fair()
	return slices.ContainsFunc(h.large, func(a *Account) bool {
		if a.held.Load() <= fair {
			return false
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return !a.ending && !a.working && !a.closed
	})
}

// oversized returns the account that holds most of those that hold more than the budget, nil
// if none does. h.mu is held.
func (h *Holders) oversized() (most *Account) {
	bound := h.budget.Bound()
	for _, a := range h.large {
		if held := a.held.Load(); held > bound && (most == nil || held > most.held.Load()) && !a.Ending() {
			most = a
		}
	}
	return most
}

// sparedIs makes a the account whose bytes are spared, nil for none. h.mu is held.
func (h *Holders) sparedIs(a *Account) {
	if a == h.lone {
		return
	}
	if old := h.lone; old != nil {
		old.mu.Lock()
		old.lone = false
		h.spared.Add(-old.held.Load())
		old.mu.Unlock()
		h.lone = nil
	}
	if a != nil {
		a.mu.Lock()
		a.lone = true
		h.spared.Add(a.held.Load())
		a.mu.Unlock()
		h.lone = a
	}
}

// listSmall lists holders of little: memory is full of them. h.mu is held.
func (h *Holders) listSmall(now int64) {
	h.all = true
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		for _, src := range s.sources {
			for a := src.accounts; a != nil; a = a.nextOf {
				h.consider(a, src.held.Load(), now)
			}
		}
		s.mu.Unlock()
	}
}

// consider lists a if it may be ended and is among the costliest so far. h.mu is held.
func (h *Holders) consider(a *Account, held, now int64) {
	a.mu.Lock()
	c := candidate{a, held, a.cost(now), a.since}
	ok := !a.ending && !a.closed && !a.working && a.held.Load() > 0
	a.mu.Unlock()
	if !ok {
		return
	}
	if len(h.next) < mostListed {
		h.next = append(h.next, c)
		if len(h.next) == mostListed {
			slices.SortFunc(h.next, compareCandidates)
		}
		return
	}
	if compareCandidates(c, h.next[0]) <= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(h.next, c, compareCandidates)
	copy(h.next, h.next[1:at])
	h.next[at-1] = c
}

// compareCandidates orders who is ended first last.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.cost, b.cost), cmp.Compare(b.since, a.since))
}
