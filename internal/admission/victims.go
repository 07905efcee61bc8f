package admission

import (
	"cmp"
	"slices"
	"time"
)

// listLife is how long a list of the costliest is good for, in ns, and mostListed its
// length: so that choosing costs little however many there are.
const (
	listLife   = int64(20 * time.Millisecond)
	mostListed = 32

	// nextToNothing says which part of Fair, one in so many, is next to nothing: 10 KiB, more than
	// the tables of a connection of HTTP/2.
	nextToNothing = 8
)

// A candidate is an account that might be ended, and why it before others.
type candidate struct {
	account  *Account
	standing int
	held     int64 // by its address, if that decides; else 0
	tiny     int   // then: -1 for who holds next to nothing, who comes last of them
	cost     float64
	since    int64
}

// victim returns the next account to be ended; nil if there is none, or if so many were chosen by a list that was made
// earlier and has no more: then these are to be ended before another is made. h.mu is held.
func (h *Holders) victim(asker *Account, n int64, times float64, chosen int) *Account {
	for range 2 {
		for i := len(h.next) - 1; i >= 0; i-- {
			if times == 0 && h.next[i].standing != slow && !h.listed {
				break // there may be slow ones by now
			}
			a := h.next[i].account
			found := h.judge(&h.next[i], asker, n, times)
			if found == nobodyIs {
				return nil
			}
			if found != notForIt {
				h.next = slices.Delete(h.next, i, i+1)
			}
			if found == isVictim {
				return a
			}
		}
		if times > 0 || chosen > 0 && !h.listed {
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
	isNone   = iota // it is not to be ended any more
	notForIt        // not for this asker, but perhaps for another
	isVictim
	nobodyIs // it costs too little, and so do the others
)

// judge looks at a candidate anew. h.mu is held.
func (h *Holders) judge(c *candidate, asker *Account, n int64, times float64) int {
	a, now := c.account, h.now()
	least := 0.0
	if times > 1 {
		if a == asker {
			return nobodyIs
		}
		asker.mu.Lock()
		least = times * asker.cost(now)
		asker.mu.Unlock()
	}
	unequal := times > 0 && a.source != asker.source && h.greedy(a.source, 0) && !h.greedy(asker.source, n)
	full := asker != nil && a != asker && h.overMuch(asker, n) > 0
	a.mu.Lock()
	defer a.mu.Unlock()
	standing := a.standing(now)
	switch held := a.held.Load(); {
	case held == 0 || !a.endable() && a != asker || a.ending || a.closed:
		return isNone
	case h.waiters && held <= h.Fair() && a.waits != 0 && a != asker:
		// It has little, and will not do with it.
		if full && a.much == 0 {
			return notForIt // the asker could have no more of what it gives back
		}
		if times == 0 || unequal || times == 1 && now-a.since >= 4*provenAfter {
			return isVictim
		}
		return notForIt
	case !h.all && held <= h.Fair():
		return isNone
	case standing > c.standing:
		return isNone // it is better than it was
	case times > 0 && a.answers != 0 && now-a.answers < provenAfter:
		return notForIt // it has hardly been able to take any of its answer
	case standing != slow && times > 0 && !(standing == sending && times == 1 && unequal):
		return nobodyIs
	case standing == answering && !h.all && h.over(n) <= h.slack():
		return nobodyIs
	case standing == sending && times > 0 && now-a.since < provenAfter:
		return notForIt
	case times > 1 && (now-a.since < provenAfter || a.cost(now) <= least):
		return nobodyIs
	}
	return isVictim
}

// endable reports whether the account may be ended. a.mu is held.
func (a *Account) endable() bool {
	return !a.ending && !a.closed && (!a.working && !a.making || a.waits != 0)
}

// list finds those that are to be ended next, unless that is known: of those that hold more
// than Fair the slow ones, of them the costliest; if one address holds more than half of the budget, and it is not
// the only one, then of that address. Only if nobody does, and the asker is not one who can
// wait, it is those of the address that holds most. h.mu is held.
func (h *Holders) list(n int64, times float64) {
	now := h.now()
	fresh := h.nextAt != 0 && now-h.nextAt < listLife && (times > 0 || len(h.next) > 0)
	h.listed = false
	if fresh && !(h.all && (times > 0 || h.anyLarge(answering+1))) && !(h.waiters && h.anyLarge(h.before)) {
		return
	}
	h.next, h.nextAt, h.listed, h.all, h.waiters = h.next[:0], now, true, false, false
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
	if !slices.ContainsFunc(h.next, func(c candidate) bool { return c.standing < answering }) {
		h.listWaiting(now, len(h.next) == 0)
	}
	if len(h.next) == 0 && times == 0 && h.over(n) > 0 {
		h.listSmall(now)
	}
	slices.SortFunc(h.next, compareCandidates)
}

// anyLarge reports whether somebody holds more than Fair who may be ended and stands worse than
// that. h.mu is held.
func (h *Holders) anyLarge(than int) bool {
	fair, now := h.Fair(), h.now()
	return slices.ContainsFunc(h.large, func(a *Account) bool {
		if a.held.Load() <= fair {
			return false
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.endable() && a.standing(now) < than
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
		old.weigh()
		old.mu.Unlock()
		h.lone = nil
	}
	if a != nil {
		a.mu.Lock()
		a.lone = true
		h.spared.Add(a.held.Load())
		a.weigh()
		a.mu.Unlock()
		h.lone = a
	}
}

// listWaiting lists those that hold little and wait for much: memory may be full of them, and none
// would get on. If there is an address that holds more than half of the budget, it is its own, which go
// before an answer that is being taken, but for those that hold next to nothing; those of others, and these, only if nobody
// else can go, which alone says. h.mu is held.
func (h *Holders) listWaiting(now int64, alone bool) {
	if h.waiting.Load() == 0 {
		return
	}
	fair := h.Fair()
	var greedy *source
	h.eachSource(func(src *source) {
		if h.greedy(src, 0) {
			greedy = src
		}
	})
	if greedy == nil && !alone {
		return
	}
	h.waiters, h.before = true, answering
	if greedy == nil {
		h.before = answering + 1 // whatever is there now
	}
	h.eachSource(func(src *source) {
		if greedy != nil && src != greedy {
			return
		}
		for a := src.accounts; a != nil; a = a.nextOf {
			a.mu.Lock()
			held := a.held.Load()
			waits := a.waits != 0 && held <= fair && (alone || held > fair/nextToNothing)
			a.mu.Unlock()
			if waits {
				h.consider(a, 0, now)
			}
		}
	})
}

// eachSource calls f for every address, with the lock of its shard held.
func (h *Holders) eachSource(f func(*source)) {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		for _, src := range s.sources {
			f(src)
		}
		s.mu.Unlock()
	}
}

// listSmall lists holders of little: memory is full of them. Of an address those that hold next to nothing, as
// connections of HTTP/2 do between requests, come last: it would take twenty of them to make room for one. h.mu is held.
func (h *Holders) listSmall(now int64) {
	h.all = true
	h.eachSource(func(src *source) {
		held := src.held.Load() // once: it may change meanwhile, and those of one address are to be told apart by what they are
		for a := src.accounts; a != nil; a = a.nextOf {
			h.consider(a, held, now)
		}
	})
}

// consider lists a if it may be ended and is among the costliest so far. h.mu is held.
func (h *Holders) consider(a *Account, held, now int64) {
	a.mu.Lock()
	c := candidate{a, a.standing(now), held, 0, a.cost(now), a.since}
	if held > 0 && a.held.Load() <= h.Fair()/nextToNothing {
		c.tiny = -1
	}
	ok := a.endable() && a.held.Load() > 0
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
	return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.tiny, b.tiny), cmp.Compare(b.standing, a.standing), cmp.Compare(a.cost, b.cost), cmp.Compare(b.since, a.since))
}
