package memory

import (
	"cmp"
	"slices"
	"time"
)

// listLife is the lifetime, in ns, of the list of the next holders to evict. maxListed is the maximum length of that list. Both
// bound the time to choose holders, however many there are.
const (
	listLife  = int64(20 * time.Millisecond)
	maxListed = 32
)

// Ranks of accounts for eviction, in the order of eviction. Holders of at most Small follow in the same order.
const (
	slow      = iota // the peer is slow, see peer.isSlow
	sending          // the peer sends at a good rate; the request can be refused
	answering        // the peer reads at a good rate; an eviction would truncate the answer
	ranks            // is added to the rank of a holder of at most Small
)

// A candidate is an account that may be evicted.
type candidate struct {
	account *Account
	rank    int
	cost    float64 // bytes × ns
	since   int64   // time at which the account began to hold something
	unread  int64   // size of the answer, if a slow peer has not read it completely; otherwise 0
}

// candidate returns the account as a candidate. ok is false if the account must not be evicted: it holds nothing, or the server
// works for it. b.mu is held.
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

// compareCandidates orders candidates so that the one to evict next is last.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.cost, b.cost), cmp.Compare(b.since, a.since))
}

// list sets b.next to the next candidates: of all accounts, or of the accounts of an address if at is not nil. b.mu is held.
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

// spared returns the bytes of the giant, an answer that is larger than the bound, which do not count.
func (b *Budget) spared() int64 {
	if a := b.giant.Load(); a != nil {
		return a.held.Load()
	}
	return 0
}

// slack returns the number of bytes by which the bound may be exceeded instead of an eviction of a holder with a good rate, see
// rule 4.
func (b *Budget) slack() int64 { return b.Bound() / slackShare }

// over returns the number of bytes by which the bound would be exceeded with n more bytes, after the evictions that are under
// way.
func (b *Budget) over(n int64) int64 {
	bound := b.Bound()
	if bound <= 0 {
		return 0
	}
	cached := b.HeldFor(InCache) // caches are dropped without an eviction
	return b.Held() + n - cached - b.ending.Load() - b.spared() - bound
}

// overLarge returns the number of bytes by which the large holders would exceed their part of the bound with n more bytes for a.
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

// need returns the number of bytes to evict for n more bytes of an account, which may be nil. If at is not nil, the limit of that
// address counts. waits tells whether the request can wait; then the part of the bound for large holders counts, too.
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

// makeRoom evicts holders until there is room for n more bytes or no candidate is left. at and waits are as for need. It returns
// true if asker itself is the costliest holder. Then asker is not evicted, because its request can be refused. With n = 0 the
// memory of asker cannot be refused, and asker may be evicted.
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
			b.noteGiant(asker, asker.held.Load()) // the previous giant may have been evicted
			asker.mu.Unlock()
		}
	}
	return false
}

// victim marks the next account for eviction and returns it. It returns nil if there is none; then costliest reports whether
// asker itself is the costliest holder.
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
				b.next = b.next[:last] // it is no candidate any more, or its rank has improved
				continue
			case !made && !waits && (c.rank%ranks != slow || c.rank >= ranks && b.large.Load() > 0):
				break candidates // the list is old: other candidates may come first by now
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

// tolerates reports whether a large holder with a good rate is not evicted, although with n more bytes of asker the bound of the
// budget or of the address would be exceeded. A sender whose eviction makes enough room is evicted. b.mu is held.
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

// lastWaiter implements the end of rule 3: it marks the last account of the queue that holds memory for eviction, and returns it.
// first is the account of the first request of the queue, for n bytes. Large holders are evicted before small ones. lastWaiter
// returns nil if there is no such account, if the first request has waited for less than lastWaitersAfter, or if a large holder
// does not wait and so may finish. b.mu is held.
func (b *Budget) lastWaiter(first *Account, n, now int64) *Account {
	if first.wait == nil || now-first.wait.since < lastWaitersAfter {
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

// end makes the holder of an account that is marked for eviction release its memory.
func (b *Budget) end(a *Account) {
	a.holder.End(a)
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	if a.wait != nil {
		a.wait.wake() // a goroutine that waits for memory must notice the eviction, too
	}
	b.mu.Unlock()
	b.signal()
}

// markEnding marks an account for eviction. It returns false if the account is marked already or is closed.
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
