package admission

import (
	"slices"
	"sync"
	"time"
)

// Bodies larger than Fair get memory one after the other, in a line: waiting bodies, and bodies of unknown length, which grow
// and may have to wait. The first of the line is left all the memory it wants, or may want, so that it can be completed; then
// the next one is the first. Otherwise several growing bodies would each hold a part of their memory and wait for the rest
// until all are refused.
//
// The line causes no evictions; victims.go chooses those. A turn is bounded, since the first may want more memory than others
// need to continue, and stalled clients may hold it: a body with a length leaves it to the first for roomWait, which is short
// where memory is scarce.

const (
	// leadFor is the time, in ns, for which bodies of unknown length leave memory to a first one of unknown length. Afterwards
	// that one has nearly all it needs, and the others get the rest.
	leadFor = goodTime

	// shortLine is the number of entries that are inspected each time to find the first one. For longer lines the result is
	// kept for linePause per entry, in ns, because many slow entries may precede it and each growing body asks several times.
	shortLine = 64
	linePause = int64(2 * time.Microsecond)
)

// A line orders the accounts of such bodies. Its lock is acquired before those of accounts, and no other lock is acquired while
// it is held.
type line struct {
	mu       sync.Mutex
	of       [2][]*Account // accounts that precede greedy addresses, and the others; each in order of age
	lead     *Account      // the first one found
	leadAt   int64         // time since which it is the first
	lookedAt int64         // time of the last search
}

// size returns the length of the line. l.mu is held.
func (l *line) size() int { return len(l.of[0]) + len(l.of[1]) }

// inLine is an account's entry in the line. The lock is the line's.
type inLine struct {
	place int8  // in of[place-1]; 0: in none
	since int64 // sort key
	wants int64 // bytes it waits for; 0 if it does not wait
	rest  int64 // further bytes it may want
}

// enter adds a to the line or updates its entry. A growing body keeps its place when it does not wait any more.
func (l *line) enter(a *Account, first bool, wants, rest int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.mu.Lock()
	ok, since := !a.closed, a.since
	if a.held.Load() == 0 {
		since = a.holders.now() // it is the youngest
	}
	a.lined = a.lined || ok
	a.mu.Unlock()
	if !ok {
		return
	}
	place := int8(2)
	if first {
		place = 1
	}
	in := &a.line
	if in.place != place {
		if in.place == 0 {
			in.since = since
		}
		l.remove(a)
		of := &l.of[place-1]
		at := len(*of)
		for at > 0 && (*of)[at-1].line.since > in.since {
			at--
		}
		*of = slices.Insert(*of, at, a)
		in.place = place
	}
	in.wants, in.rest = wants, rest
}

// remove removes a from the line. l.mu is held.
func (l *line) remove(a *Account) {
	if a.line.place == 0 {
		return
	}
	of := &l.of[a.line.place-1]
	if i := slices.Index(*of, a); i >= 0 {
		*of = slices.Delete(*of, i, i+1)
	}
	a.line.place = 0
	if l.lead == a {
		l.lead = nil
	}
}

// stay records that a does not wait any more: it leaves the line unless its body grows. It reports whether the first of the
// line has left.
func (l *line) stay(a *Account, grows bool) (led bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.line.wants = 0; grows {
		return false
	}
	a.mu.Lock()
	a.lined = false
	a.mu.Unlock()
	led = l.lead == a
	l.remove(a)
	return led
}

// first returns the first of the line that waits or whose body grows at a good rate, or nil. Among accounts of one address the
// oldest is first, whatever their places. l.mu is held.
func (l *line) first(now int64) *Account {
	if n := l.size(); n > shortLine && now-l.lookedAt < int64(n)*linePause {
		if l.lead != nil && !l.lead.comesOn(now) {
			return nil
		}
		return l.lead
	}
	l.lookedAt = now
	var first *Account
	for _, of := range l.of {
		for _, o := range of {
			if first != nil && o.line.since >= first.line.since {
				break
			}
			if (first == nil || o.source == first.source) && o.comesOn(now) {
				first = o
				break
			}
		}
	}
	if first != l.lead {
		l.lead, l.leadAt = first, now
	}
	return first
}

// comesOn reports whether an account in the line waits, or its body grows at a good rate.
func (a *Account) comesOn(now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.ending && !a.closed && (a.waits != 0 || !a.idles(now) && a.standing(now) != slow)
}

// leads reports whether a is the first of the line.
func (l *line) leads(a *Account) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lead == a
}

// idles reports whether the server has not asked a's peer for anything for long: it works with the data it has. a.mu is held.
func (a *Account) idles(now int64) bool {
	return a.working && a.waits == 0 && now-a.stopped > goodPause
}

// leaves reports whether an account must leave the free memory to the first of the line instead of growing by n bytes.
func (h *Holders) leaves(a *Account, n int64) bool {
	l := &h.line
	a.mu.Lock()
	unknown := a.unknown
	a.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size() == 0 {
		return false
	}
	now := h.now()
	first := l.first(now)
	if first == nil || first == a {
		return false
	}
	first.mu.Lock()
	since, grows := first.waits, first.unknown
	first.mu.Unlock()
	if since == 0 || grows {
		since = l.leadAt
	}
	atMost := roomWait
	if grows && unknown {
		atMost = leadFor
	}
	if now-since >= atMost {
		return false
	}
	place := a.line.place
	if place == 0 {
		place = 1
		if h.greedy(a.source, n) {
			place = 2
		}
	}
	if place < first.line.place && a.source != first.source || place == first.line.place && a.line.place != 0 && a.line.since < first.line.since {
		return false
	}
	n += max(first.line.wants, first.line.rest)
	return h.over(n) > 0 || h.overMuch(a, n) > 0
}

// growsBehind reports whether a body of unknown length waits for n more bytes, though it may be smaller than Fair, because an
// older one would have less to grow by, or because memory is exhausted and its holders may be nearly complete. The wait is
// short.
func (h *Holders) growsBehind(a *Account, n, waits int64) bool {
	a.mu.Lock()
	unknown := a.unknown
	a.mu.Unlock()
	return unknown && (waits == 0 || h.now()-waits < leadFor) && (h.overFor(a, n) > 0 || h.leaves(a, n))
}

// grows records the place of a growing body of unknown length that holds more than leastShare.
func (h *Holders) grows(a *Account, most int64) {
	a.mu.Lock()
	grows, rest := a.unknown && a.held.Load() > leastShare, most-a.body+a.beside
	a.mu.Unlock()
	if !grows {
		return
	}
	l := &h.line
	l.mu.Lock()
	wants, place := a.line.wants, a.line.place
	l.mu.Unlock()
	first := place == 1 || place == 0 && !h.greedy(a.source, 0)
	l.enter(a, first, wants, min(max(rest, 0), h.forMuch()))
}

// endsBody records the end of the account's current body. If it was the first of the line, it may have wanted less than it was
// left.
func (a *Account) endsBody() {
	a.mu.Lock()
	a.unknown = false
	lined := a.lined && a.waits == 0
	a.mu.Unlock()
	if lined && a.holders.line.stay(a, false) {
		a.holders.signalLine()
	}
}
