package admission

import (
	"cmp"
	"slices"
	"time"
)

// listLife is the lifetime of a list of the costliest holders, in ns, and mostListed its length. Both bound the cost of
// choosing, however many holders there are.
const (
	listLife   = int64(20 * time.Millisecond)
	mostListed = 32

	// nextToNothing is the divisor of Fair for a negligible amount: 10 KiB, more than the tables of an HTTP/2 connection.
	nextToNothing = 8
)

// A candidate is an account that may be evicted, with its sort keys.
type candidate struct {
	account  *Account
	standing int
	held     int64 // by its address, if that decides; otherwise 0
	tiny     int   // then: -1 for negligible holders, which come last
	cost     float64
	since    int64
}

// victim returns the next account to evict; nil if there is none, or if a list that was made earlier is used up after chosen
// evictions: these are carried out before another list is made. h.mu is held.
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
			return nil // the asker retries
		}
		h.nextAt = 0
		h.list(n, times)
	}
	if n == 0 && asker != nil && !asker.Ending() {
		return asker // no other candidate is left
	}
	return nil
}

// Results of judging a candidate.
const (
	isNone   = iota // it is no candidate any more
	notForIt        // it is no candidate for this asker
	isVictim
	nobodyIs // it costs too little, and so do all after it
)

// judge evaluates a candidate again. h.mu is held.
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
		// It holds little and does not wait for a large amount.
		if full && a.much == 0 {
			return notForIt // its memory would not help the asker
		}
		if times == 0 || unequal || times == 1 && now-a.since >= 4*provenAfter {
			return isVictim
		}
		return notForIt
	case !h.all && held <= h.Fair():
		return isNone
	case standing > c.standing:
		return isNone // its standing has improved
	case times > 0 && a.answers != 0 && now-a.answers < provenAfter:
		return notForIt // it had hardly any time to read its response
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

// endable reports whether the account may be evicted. a.mu is held.
func (a *Account) endable() bool {
	return !a.ending && !a.closed && (!a.working && !a.making || a.waits != 0)
}

// list finds the next candidates, unless they are known: the slow ones of the holders of more than Fair, the costliest first;
// if one of several addresses holds more than half of the budget, those of that address. Only if there is none, and the asker
// cannot wait, the candidates are those of the address that holds most. h.mu is held.
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
		greedy = false // it does so by many small holders
	}
	if !slices.ContainsFunc(h.next, func(c candidate) bool { return c.standing < answering }) {
		h.listWaiting(now, len(h.next) == 0)
	}
	if len(h.next) == 0 && times == 0 && h.over(n) > 0 {
		h.listSmall(now)
	}
	slices.SortFunc(h.next, compareCandidates)
}

// anyLarge reports whether an evictable holder of more than Fair has a lower standing than than. h.mu is held.
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

// oversized returns the largest account that exceeds the budget, or nil. h.mu is held.
func (h *Holders) oversized() (most *Account) {
	bound := h.budget.Bound()
	for _, a := range h.large {
		if held := a.held.Load(); held > bound && (most == nil || held > most.held.Load()) && !a.Ending() {
			most = a
		}
	}
	return most
}

// sparedIs makes a the account whose bytes are spared; nil for none. h.mu is held.
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

// listWaiting lists small holders that wait for large amounts: they may fill memory and block each other. If an address holds
// more than half of the budget, its holders are listed, except negligible ones; they are evicted before a response that is
// being read. Holders of other addresses, and negligible ones, are listed only if alone reports that no other candidate is
// left. h.mu is held.
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
		h.before = answering + 1 // whatever holders there are
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

// eachSource calls f for each address, with the lock of its shard held.
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

// listSmall lists small holders, which fill memory. Negligible ones of an address, such as HTTP/2 connections between requests,
// come last: twenty of them make room for one. h.mu is held.
func (h *Holders) listSmall(now int64) {
	h.all = true
	h.eachSource(func(src *source) {
		held := src.held.Load() // once: it may change meanwhile, and the order within one address must not depend on it
		for a := src.accounts; a != nil; a = a.nextOf {
			h.consider(a, held, now)
		}
	})
}

// consider lists a if it may be evicted and is among the costliest so far. h.mu is held.
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

// compareCandidates sorts the next candidate last.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.tiny, b.tiny), cmp.Compare(b.standing, a.standing), cmp.Compare(a.cost, b.cost), cmp.Compare(b.since, a.since))
}
