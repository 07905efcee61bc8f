package admission

import (
	"sync/atomic"
	"time"
)

// Who asks for what may be small waits in line with those who want much, where all that is known is that some
// answers are large. So one that nothing is known of may begin as a probe: without room, on the promise that no more
// than so much comes of it. What really comes is charged when it is there.
//
// Bound: a probe begins if what is held and what all probes have promised, its own included, exceed the budget by no more
// than slack; or if it is the only one. So the budget is exceeded by slack and one answer at most, and after a probe whose
// answer was large no other begins until there is room for that.
//
// Each such answer ends slower clients, and is work for the collector. So there are probeBurst of them, and one more in each
// probePause, however many clients ask for ever new things: they get no more that way than by waiting.
//
// An action that blocks may do so for long, and must not hold up the quick ones: its probe leaves its place to others, if all such
// probes have promised no more than half of the budget, or it is the only one. The budget is exceeded by as much again if all of
// them turn out to be large.
//
// Probes of an address that holds something else leave the place to one whose address holds nothing, so that a client that
// holds much cannot take all of them by asking for ever new things.

const (
	probePause = int64(250 * time.Millisecond) // in ns
	probeBurst = 4

	// blockedShare is the part of the budget, one in so many, that probes whose actions block may promise together.
	blockedShare = 2
)

// Probe reports whether a request may begin for which there is no room, since it probably leaves little: at the most
// n bytes. What it leaves is to be forced; until EndProbe or EndAhead the promise stands. It does not wait.
func (a *Account) Probe(n int64) bool {
	h := a.holders
	first := a.source.known && a.source.held.Load() == a.Held()
	h.probing.Lock()
	defer h.probing.Unlock()
	a.mu.Lock()
	promised, newcomer, over := a.promised > 0, a.newcomer, a.ending || a.closed
	a.mu.Unlock()
	switch {
	case over || h.overAddress(a, n) > 0:
		return false
	case promised:
		a.Unwait()
		return true // what a connection has asked at once is made until there is much of it
	case !newcomer && !first && h.newcomers.Load() > 0 || !h.fitsProbe(n):
		h.denied.Store(true)
		if first {
			a.mu.Lock()
			a.comes(!a.closed)
			a.mu.Unlock()
		}
		return false
	}
	a.mu.Lock()
	if !a.closed {
		a.promised = n
		h.promised.Add(n)
	}
	a.mu.Unlock()
	a.Unwait()
	return true
}

// ProbeBlocks notes that the action of a request blocks. If it is a probe, it leaves its place to others as far as it may.
func (a *Account) ProbeBlocks() {
	if !a.Probing() { // nor will it be, and all that block come by
		return
	}
	h := a.holders
	h.probing.Lock()
	a.mu.Lock()
	n, blocked := a.promised, h.blocked.Load()
	leaves := n > 0 && !a.blocked && (blocked == 0 || blocked+n <= h.budget.Bound()/blockedShare)
	if leaves {
		a.blocked = true
		h.blocked.Add(n)
		h.promised.Add(-n)
	}
	a.mu.Unlock()
	h.probing.Unlock()
	if leaves {
		h.signal()
	}
}

// promises returns where what the account has promised is counted. a.mu is held.
func (a *Account) promises() *atomic.Int64 {
	if a.blocked {
		return &a.holders.blocked
	}
	return &a.holders.promised
}

// probesPause reports whether probes have had as many large answers lately as there may be.
func (h *Holders) probesPause() bool { return h.probesAt.Load() > h.now()+(probeBurst-1)*probePause }

// fitsProbe reports whether there may be another probe. h.probing is held.
func (h *Holders) fitsProbe(n int64) bool {
	if h.probesPause() {
		return false
	}
	promised := h.promised.Load()
	over := h.budget.Held() + promised - h.budget.HeldFor(InCache) - h.spared.Load() - h.budget.Bound()
	return promised == 0 && over <= h.slack() || over+n <= h.slack()
}

// ReserveLikely is ReserveAhead for a request that probably leaves less than n bytes: where it would wait, it begins
// as a probe if it may.
func (a *Account) ReserveLikely(n int64) Outcome {
	h := a.holders
	if !a.Ending() && h.takeMuch(a, Output, n, 0) {
		a.Unwait()
		a.makes(n)
		return Granted
	}
	if a.Probe(n) {
		return Granted
	}
	return a.ReserveAhead(n)
}

// ProbesFirst reports whether the account goes before those whose addresses hold something else, as a probe.
func (a *Account) ProbesFirst() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newcomer || a.source.known && a.source.held.Load() == a.held.Load()
}

// EndProbe ends a promise: what is left of the answer has been charged.
func (a *Account) EndProbe() {
	a.mu.Lock()
	n, all := a.promised, a.promises()
	a.promised, a.blocked = 0, false
	a.mu.Unlock()
	if n == 0 {
		return
	}
	h := a.holders
	if a.Held() > leastShare {
		h.probing.Lock()
		h.probesAt.Store(max(h.probesAt.Load(), h.now()) + probePause)
		h.probing.Unlock()
	}
	all.Add(-n)
	h.signal()
}

// Probing reports whether the account has promised something.
func (a *Account) Probing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.promised > 0
}

// comes notes whether the account waits to be a probe, and its address holds nothing else. a.mu is held.
func (a *Account) comes(comes bool) {
	if a.newcomer == comes {
		return
	}
	a.newcomer = comes
	if comes {
		a.holders.newcomers.Add(1)
	} else {
		a.holders.newcomers.Add(-1)
	}
}

// letsProbe reports whether those are to look who were denied a probe, and may have one now. It says so once. When probes
// have paused nobody tells: those who wait look by themselves as often as that.
func (h *Holders) letsProbe() bool {
	return h.denied.Load() && h.promised.Load() == 0 && h.budget.Held() <= h.budget.Bound()+h.slack() && !h.probesPause() &&
		h.denied.CompareAndSwap(true, false)
}
