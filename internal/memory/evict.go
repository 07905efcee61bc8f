package memory

import (
	"cmp"
	"slices"
	"time"
)

// listLife is the lifetime of a list of the next holders to evict, in ns, and maxListed its length. Both bound the cost of
// choosing, however many holders there are.
const (
	listLife  = int64(20 * time.Millisecond)
	maxListed = 32
)

// Ranks of accounts for eviction, in the order of eviction. Holders of at most Small follow in the same order.
const (
	slow      = iota // it holds its memory for long
	sending          // its peer sends at a good rate; the request can be refused
	answering        // its peer reads at a good rate; the answer would be truncated
	ranks            // added to those of holders of at most Small
)

// A candidate is an account that may be evicted.
type candidate struct {
	account *Account
	rank    int
	cost    float64 // bytes × ns
	since   int64   // time at which it began to hold something
	unread  int64   // size of the answer that its slow peer has not read, 0 for none
}

// candidate returns the account as a candidate. An account that holds nothing, or for which the server works, is no candidate.
// b.mu is held.
func (a *Account) candidate(now int64) (c candidate, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := a.held.Load()
	if held <= 0 || a.ending || a.closed || (a.working || a.making) && a.wait == nil {
		return c, false
	}
	c = candidate{account: a, rank: sending, cost: float64(held) * min(a.peer.expected(now, held), float64(maxTime)), since: a.peer.since}
	answers := a.peer.answers != 0
	if answers {
		c.rank = answering
	}
	if a.peer.isSlow(now, held) {
		if c.rank = slow; answers {
			c.unread = a.peer.unsent
		}
	}
	if held <= Small {
		c.rank += ranks
	}
	return c, true
}

// compareCandidates sorts the next candidate last.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.cost, b.cost), cmp.Compare(b.since, a.since))
}

// list finds the next candidates, at an address unless that is nil. b.mu is held.
func (b *Budget) list(at *address, now int64) {
	b.next = b.next[:0]
	if b.nextAt = now; at != nil {
		b.nextAt = 0 // the list serves this call only
	}
	for _, a := range b.all {
		if a.held.Load() == 0 || at != nil && a.address != at {
			continue
		}
		c, ok := a.candidate(now)
		switch {
		case !ok:
		case len(b.next) < maxListed:
			if b.next = append(b.next, c); len(b.next) == maxListed {
				slices.SortFunc(b.next, compareCandidates)
			}
		case compareCandidates(c, b.next[0]) > 0:
			at, _ := slices.BinarySearchFunc(b.next, c, compareCandidates)
			copy(b.next, b.next[1:at])
			b.next[at-1] = c
		}
	}
	slices.SortFunc(b.next, compareCandidates)
}

// spared returns the bytes of the one answer larger than the bound.
func (b *Budget) spared() int64 {
	if a := b.giant.Load(); a != nil {
		return a.held.Load()
	}
	return 0
}

// slack returns the bytes by which the bound may be exceeded instead of cutting off an answer that is read at a good rate.
func (b *Budget) slack() int64 { return b.Bound() / slackShare }

// over returns the bytes by which the bound would be exceeded with n more, after all current evictions.
func (b *Budget) over(n int64) int64 {
	bound := b.Bound()
	if bound <= 0 {
		return 0
	}
	cached := b.HeldFor(InCache) // caches are dropped without an eviction
	return b.Held() + n - cached - b.ending.Load() - b.spared() - bound
}

// overLarge returns the bytes by which holders of more than Small would exceed their part of the bound with n more bytes for a.
func (b *Budget) overLarge(a *Account, n int64) int64 {
	bound := b.Bound()
	if bound <= 0 {
		return 0
	}
	a.mu.Lock()
	held, others := a.held.Load(), b.large.Load()
	if !a.ending {
		others -= largeBytes(held)
	}
	a.mu.Unlock()
	if giant := b.giant.Load(); giant != nil && giant != a {
		others -= giant.held.Load()
	}
	if others <= 0 {
		return 0
	}
	return others + held + n - b.largeShare()
}

// need returns the bytes that must be evicted for n more bytes of an account, which may be nil: at an address unless that is
// nil, and for a request that waits or one that does not.
func (b *Budget) need(a *Account, n int64, at *address, waits bool) int64 {
	switch {
	case at != nil:
		return b.overAddress(a, n)
	case waits:
		return max(b.over(n), b.overLarge(a, n))
	}
	return b.over(n)
}

// balance evicts holders for memory that a was forced to hold.
func (b *Budget) balance(a *Account, u Use) {
	if met := b.overConnection(a, u, 0); met != NoCap {
		a.meets(met)
		if b.markEnding(a) {
			b.end(a)
		}
		return
	}
	if b.overAddress(a, 0) > 0 {
		b.makeRoom(a, 0, a.address, false)
	}
	if b.over(0) > 0 {
		b.makeRoom(a, 0, nil, false)
	}
}

// makeRoom evicts holders until there is room for n more bytes or no candidate is left: at an address unless that is nil, and
// for a request that waits or one that does not. It reports whether the asker itself is the costliest. It is not evicted then,
// unless n is 0: memory that it was forced to hold cannot be refused.
func (b *Budget) makeRoom(asker *Account, n int64, at *address, waits bool) (costliest bool) {
	for b.need(asker, n, at, waits) > 0 {
		v, costliest := b.victim(asker, n, at, waits)
		if v == nil {
			return costliest
		}
		if at != nil {
			v.meets(AddressCap)
		}
		b.end(v)
		if asker != nil {
			asker.mu.Lock()
			b.noteGiant(asker, asker.held.Load()) // in place of the one that was evicted
			asker.mu.Unlock()
		}
	}
	return false
}

// victim marks the next account for eviction and returns it. It returns nil if there is none, and whether the asker itself is
// the costliest.
func (b *Budget) victim(asker *Account, n int64, at *address, waits bool) (v *Account, costliest bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	for {
		made := at != nil || b.nextAt == 0 || now-b.nextAt >= listLife
		if made {
			b.list(at, now)
		}
	candidates:
		for len(b.next) > 0 {
			last := len(b.next) - 1
			before := b.next[last]
			c, ok := before.account.candidate(now)
			switch {
			case !ok || c.rank > before.rank:
				b.next = b.next[:last] // it is none any more, or has improved
				continue
			case !made && !waits && (c.rank%ranks != slow || c.rank >= ranks && b.large.Load() > 0):
				break candidates // there may be others by now that go first
			case waits && c.rank != slow:
				return b.lastWaiter(asker, n, now), false
			case b.tolerates(c, asker, n, at):
				return nil, false
			case c.account == asker && n > 0:
				return nil, true
			}
			b.next = b.next[:last]
			if b.markEnding(c.account) {
				b.noteUnread(c, now)
				return c.account, false
			}
		}
		switch {
		case waits:
			return b.lastWaiter(asker, n, now), false
		case made && n == 0 && asker != nil && b.markEnding(asker):
			return asker, false // no other candidate is left
		case made:
			return nil, false
		}
		b.nextAt = 0
	}
}

// tolerates reports whether a holder of more than Small with a good rate is kept although the bound of the budget, or of an
// address, is exceeded by n more bytes of the asker. A sender whose eviction suffices is not kept. b.mu is held.
func (b *Budget) tolerates(c candidate, asker *Account, n int64, at *address) bool {
	over, slack := b.over(n), b.slack()
	if at != nil {
		over, slack = b.overAddress(asker, n), b.maxAddress/slackShare
	}
	switch c.rank {
	case sending:
		return over <= slack && c.account.Held() < over
	case answering:
		return over <= slack || at != nil && len(b.next) == 1
	}
	return false
}

// lastWaiter marks the last request of the queue whose memory would help the first one, which wants n bytes, and returns it;
// holders of more than Small come first. It returns nil if there is none, if the first has not waited for long, or if a holder
// of more than Small does not wait and may finish. b.mu is held.
func (b *Budget) lastWaiter(first *Account, n, now int64) *Account {
	if first.wait == nil || now-first.wait.since < patience {
		return nil
	}
	for _, a := range b.all {
		if a.held.Load() > Small && a.wait == nil && !a.Evicted() {
			return nil
		}
	}
	for _, least := range [...]int64{Small, 0} {
		for _, w := range slices.Backward(b.queue) {
			if a := w.account; a != first && a.held.Load() > least && (least > 0 || b.over(n) > 0) && b.markEnding(a) {
				return a
			}
		}
	}
	return nil
}

// end ends an account that is marked for eviction.
func (b *Budget) end(a *Account) {
	a.holder.End(a)
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	if a.wait != nil {
		a.wait.wake() // its holder is told by End, too
	}
	b.mu.Unlock()
	b.signal()
}

// markEnding marks an account for eviction, and returns false if it was marked or is closed.
func (b *Budget) markEnding(a *Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending || a.closed {
		return false
	}
	held := a.held.Load()
	a.ending, a.counted = true, false
	b.ended.Add(1)
	b.ending.Add(held)
	b.large.Add(-largeBytes(held))
	b.noteGiant(a, held)
	if a.address != nil {
		a.address.ending.Add(held)
	}
	return true
}
