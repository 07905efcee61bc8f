package admission

import (
	"slices"
	"sync"
	"time"
)

// Bodies that are larger than Fair get their room one after the other, in a line: those that wait for it, and those of
// unknown length, which grow and may have to wait for more. The first of the line is left all the room that it wants, or may
// want, so that it can be completed; then the next one is the first. Without that, several that grow would each hold a part of
// what they need and wait for the rest, until all are refused.
//
// Nobody is ended for that: victims.go decides who makes room, as always. A turn is bounded, since the first may want more than
// others that could go on, or the room may be held by clients that do not move: a body of announced length leaves it to the first
// for roomWait, which is short where memory is.

const (
	// leadFor is how long, in ns, bodies of unknown length leave the room to a first one of unknown length: it may have nearly
	// all that it needs, and the others the rest.
	leadFor = goodTime

	// shortLine is how many are looked at whenever somebody asks who is the first; of more that is found out again
	// after linePause for each, in ns: many slow ones can stand before it, and each body that grows asks several times.
	shortLine = 64
	linePause = int64(2 * time.Microsecond)
)

// A line has the accounts of such bodies. Its lock comes before those of accounts, and no other is taken while it is
// held.
type line struct {
	mu       sync.Mutex
	of       [2][]*Account // those who go before greedy addresses, and the others; each the eldest first
	lead     *Account      // who was found to be the first
	leadAt   int64         // since when it is
	lookedAt int64         // when that was found last
}

// size returns how many stand in line. l.mu is held.
func (l *line) size() int { return len(l.of[0]) + len(l.of[1]) }

// inLine is what an account has to do with it. The lock is the line's.
type inLine struct {
	place int8  // in of[place-1]; 0: in none
	since int64 // by which it is sorted
	wants int64 // bytes it waits for, 0 if it does not
	rest  int64 // bytes it may want besides
}

// enter has a stand in line, or changes what is known of it. A body grows on, and keeps its place, when it does not wait any more.
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

// remove takes a out. l.mu is held.
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

// stay notes that a does not wait any more: it leaves the line unless its body grows, or is over. It reports whether a
// leaves it that was its first.
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

// first returns who is the first of the line, nil if nobody is: it waits, or its body grows at a good rate. Of those of one
// address the eldest goes first, whenever they came to be where they stand. l.mu is held.
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

// comesOn reports whether an account in line waits, or its body grows at a good rate.
func (a *Account) comesOn(now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.ending && !a.closed && (a.waits != 0 || !a.idles(now) && a.standing(now) != slow)
}

// leads reports whether a was found to be the first of the line.
func (l *line) leads(a *Account) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lead == a
}

// idles reports whether nothing has been asked of a's peer for long: the server works with what it has. a.mu is held.
func (a *Account) idles(now int64) bool {
	return a.working && a.waits == 0 && now-a.stopped > goodPause
}

// leaves reports whether an account leaves the room that there is for n bytes more of a body to the first of the line.
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

// growsBehind reports whether a body of unknown length waits for n bytes more, though it may not be larger than Fair,
// since an elder one would have less to grow by, or since there is no room: who has it may be nearly complete. It does not
// for long.
func (h *Holders) growsBehind(a *Account, n, waits int64) bool {
	a.mu.Lock()
	unknown := a.unknown
	a.mu.Unlock()
	return unknown && (waits == 0 || h.now()-waits < leadFor) && (h.overFor(a, n) > 0 || h.leaves(a, n))
}

// grows notes how a body of unknown length is to stand in line that holds more than leastShare already.
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

// endsBody notes that the present body of an account is over. If it led the line it may have wanted less than it was left.
func (a *Account) endsBody() {
	a.mu.Lock()
	a.unknown = false
	lined := a.lined && a.waits == 0
	a.mu.Unlock()
	if lined && a.holders.line.stay(a, false) {
		a.holders.signalLine()
	}
}
