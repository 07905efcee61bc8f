package admission

import (
	"sync/atomic"
	"time"
)

// A request whose response may be small would wait in line with requests for large responses, if only the existence of large
// ones is known. Such a request may begin as a probe: without a reservation, with the promise to hold at most a given number of
// bytes. The real amount is charged when it is known.
//
// Bound: a probe begins if the held memory and the promises of all probes, including its own, exceed the budget by at most
// slack; or if it is the only probe. So the budget is exceeded by at most slack and one response, and after a probe with a
// large response no other begins until there is memory for it.
//
// Each such response evicts slower clients and is work for the collector. So there are probeBurst of them, and one more in each
// probePause: clients that keep asking for new things gain nothing over waiting.
//
// An action that blocks may do so for long and must not delay quick ones: its probe leaves its place to others, if all such
// probes have promised at most half of the budget, or it is the only one. The budget is exceeded by that much again if all of
// them turn out to be large.
//
// Probes of an address that holds something else yield to one whose address holds nothing, so that a large holder cannot occupy
// all probes.

const (
	probePause = int64(250 * time.Millisecond) // in ns
	probeBurst = 4

	// blockedShare is the divisor of the budget for the promises of probes whose actions block.
	blockedShare = 2
)

// Probe reports whether a request may begin without a reservation, because it probably holds little: at most n bytes. Its
// memory is charged by Force; the promise stands until EndProbe or EndAhead. It does not wait.
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
		return true // pipelined requests of a connection are answered until they hold much
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

// ProbeBlocks records that the action of a request blocks. A probe leaves its place to others, as far as permitted.
func (a *Account) ProbeBlocks() {
	if !a.Probing() { // it will not be one, and all blocking actions call this
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

// promises returns the counter for the account's promise. a.mu is held.
func (a *Account) promises() *atomic.Int64 {
	if a.blocked {
		return &a.holders.blocked
	}
	return &a.holders.promised
}

// probesPause reports whether the burst of large probe responses is used up.
func (h *Holders) probesPause() bool { return h.probesAt.Load() > h.now()+(probeBurst-1)*probePause }

// fitsProbe reports whether another probe may begin. h.probing is held.
func (h *Holders) fitsProbe(n int64) bool {
	if h.probesPause() {
		return false
	}
	promised := h.promised.Load()
	over := h.budget.Held() + promised - h.budget.HeldFor(InCache) - h.spared.Load() - h.budget.Bound()
	return promised == 0 && over <= h.slack() || over+n <= h.slack()
}

// ReserveLikely is ReserveAhead for a request that probably holds less than n bytes: where it would wait, it begins as a probe
// if it may.
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

// ProbesFirst reports whether the account, as a probe, precedes those whose addresses hold something else.
func (a *Account) ProbesFirst() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newcomer || a.source.known && a.source.held.Load() == a.held.Load()
}

// EndProbe ends a promise: the rest of the response has been charged.
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

// Probing reports whether the account has a promise.
func (a *Account) Probing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.promised > 0
}

// comes records whether the account waits to be a probe while its address holds nothing else. a.mu is held.
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

// letsProbe reports, once, whether accounts that were denied a probe are to be woken. There is no wake-up at the end of a
// pause: waiting accounts poll at that interval.
func (h *Holders) letsProbe() bool {
	return h.denied.Load() && h.promised.Load() == 0 && h.budget.Held() <= h.budget.Bound()+h.slack() && !h.probesPause() &&
		h.denied.CompareAndSwap(true, false)
}
