package admission

import (
	"sync/atomic"
	"time"
)

// A Cap is a bound on what one may hold, however much room there is.
type Cap uint8

const (
	NoCap         Cap = iota
	ConnectionCap     // Holders.MaxConnection
	AddressCap        // Holders.MaxAddress
	PartsCap          // the same, because of what other accounts of the group hold
	BudgetCap         // the budget is smaller than what was asked for
)

// A Group is accounts that MaxConnection bounds together, but for answers, such as those of a connection
// and of its parts. The zero value is ready.
type Group struct {
	held atomic.Int64 // bytes, without answers
	all  atomic.Int64 // ... and with them
	turn atomic.Bool  // one of them waits as if its address were modest, see takeTurn
}

// alone reports whether the others of a's group hold little.
func (g *Group) alone(a *Account) bool { return g != nil && g.all.Load()-a.Held() <= leastShare }

// takeTurn has an account that waits go before others of a greedy address if its group holds little else, one of a
// group's at a time: however many a connection asks for at once, others get their turns.
func (a *Account) takeTurn() {
	if !a.group.alone(a) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.modest && a.waits != 0 && a.group.turn.CompareAndSwap(false, true) {
		a.modest, a.turn = true, true
		a.holders.modest.Add(1)
	}
}

// Crowded reports whether a group holds more than a little of answers that are not taken, while holders of much
// have nearly all that they may have together: what more it asks for is to wait until there is room.
func (h *Holders) Crowded(g *Group) bool {
	bound := h.budget.Bound()
	return bound > 0 && g.all.Load()-g.held.Load() > leastShare && h.budget.Held() > bound-bound/smallShare
}

func (g *Group) note(u Use, n int64) {
	if g != nil && u != Output {
		g.held.Add(n)
	}
}

// take is note unless the group would hold more than most, if that is a bound: then it is false.
func (g *Group) take(u Use, n, most int64) bool {
	if g == nil || u == Output {
		return true
	}
	for {
		held := g.held.Load()
		if most > 0 && held+n > most {
			return false
		}
		if g.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Join makes the account, which must hold nothing yet, one of a group's, nil for none.
func (a *Account) Join(g *Group) { a.group = g }

// SetCaps bounds the body of a request, beside which its connection may hold as much as reading
// takes, and what an address holds; 0 is no bound.
func (h *Holders) SetCaps(body, reading, address int64) {
	h.maxBody, h.MaxAddress = body, address
	if body > 0 {
		h.MaxConnection = body + reading
	}
}

// MostBody returns how large a body may be, 0 for any size.
func (h *Holders) MostBody() int64 {
	most := h.budget.Bound()
	for _, bound := range [...]int64{h.maxBody, h.MaxAddress} {
		if bound > 0 && (most <= 0 || bound < most) {
			most = bound
		}
	}
	return most
}

// MostGrown returns the size, in bytes, to which a buffer of has bytes may grow that must hold want. If it is
// not known how much is to come (unknown) and there is not much room, it grows by no more than a quarter at
// once. It leaves some of what an address may hold to what is held beside the body.
func (h *Holders) MostGrown(want, has int, unknown bool) int {
	bound, address := h.budget.Bound(), h.MaxAddress
	if address > 0 && (bound <= 0 || address < bound) {
		bound = address
	}
	if unknown && bound > 0 && has > leastShare && 8*int64(want) > bound {
		want = min(want, has+has/4)
	}
	if beside := address - leastShare; unknown && address > 0 && int64(has) < beside {
		want = int(min(int64(want), beside))
	}
	if most := h.MostBody(); most > int64(has) {
		return int(min(int64(want), most))
	}
	return want
}

// Why says why there is no room.
func (h *Holders) Why(met Cap) string {
	switch met {
	case ConnectionCap, PartsCap:
		return "the connection holds as much memory as one may"
	case AddressCap:
		return "its address holds as much memory as one may"
	}
	return "the " + h.budget.String() + " is used up"
}

// Met returns the cap because of which the account was refused memory, or was ended; NoCap if
// that was for want of room.
func (a *Account) Met() Cap {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.met
}

// Capped reports whether a cap was the reason that is set.
func (c Cap) Capped() bool { return c == ConnectionCap || c == PartsCap || c == AddressCap }

func (a *Account) meets(c Cap) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.met = c
}

// overConnection returns which cap n more bytes for a use would pass, of the account or of its group. An answer
// is made by the server, and cannot be held back.
func (h *Holders) overConnection(a *Account, u Use, n int64) Cap {
	switch {
	case h.MaxConnection <= 0 || u == Output:
	case a.Held()+n > h.MaxConnection:
		return ConnectionCap
	case a.group != nil && a.group.held.Load()+n > h.MaxConnection:
		return PartsCap
	}
	return NoCap
}

// overAddress returns by how many bytes a's address would pass what it may hold, were it to hold
// n more, when all have gone that are being ended.
func (h *Holders) overAddress(a *Account, n int64) int64 {
	if h.MaxAddress <= 0 || !a.source.known {
		return 0
	}
	return a.source.held.Load() - a.source.ending.Load() + n - h.MaxAddress
}

// fitsAddress is what take asks for n more bytes, with h.capping held: what is being let go of is
// room for those who hold little only.
func (h *Holders) fitsAddress(a *Account, n int64) bool {
	over := h.overAddress(a, n)
	if a.Held()+n > leastShare {
		over += a.source.ending.Load()
	}
	return over <= 0
}

// searchPause is for how long nobody is looked for again at an address where there was nobody
// who could make room.
const searchPause = int64(20 * time.Millisecond)

// makeRoomAt ends holders of a's address until it may hold n bytes more, or nobody is left who is
// to be ended for that: the slow ones first, of them the costliest. For one that will
// hold little everybody makes room who holds much or is slow, for another only
// who is slow and costlier. With n = 0, for what a has been forced to hold already, it is anybody,
// a too, but for the answer of one that is alone there and takes it.
func (h *Holders) makeRoomAt(a *Account, n int64) {
	for h.overAddress(a, n) > 0 {
		v := h.costliestAt(a, n)
		if v == nil {
			return
		}
		v.meets(AddressCap)
		h.end(v)
	}
}

// costliestAt returns who of a's address is to be ended next, nil for nobody.
func (h *Holders) costliestAt(a *Account, n int64) *Account {
	now := h.now()
	a.mu.Lock()
	little, cost := a.held.Load()+n <= leastShare, a.cost(now)
	a.mu.Unlock()
	src := a.source
	s := h.shardOf(src.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < src.searchAt {
		return nil
	}
	var most candidate
	holding := 0
	for b := src.accounts; b != nil; b = b.nextOf {
		b.mu.Lock()
		held := b.held.Load()
		if held > 0 {
			holding++
		}
		c := candidate{account: b, standing: b.standing(now), cost: b.cost(now), since: b.since}
		ok := held > 0 && b.endable() && (n == 0 || b != a)
		switch {
		case n == 0: // it cannot be refused
		case little:
			ok = ok && (held > leastShare || c.standing == slow)
		default:
			ok = ok && c.standing == slow && now-b.since >= provenAfter && c.cost > cost
		}
		b.mu.Unlock()
		if ok && (most.account == nil || compareCandidates(c, most) > 0) {
			most = c
		}
	}
	if most.account != nil && most.standing == answering && (holding == 1 || n == 0 && h.overAddress(a, 0) <= h.MaxAddress/slackShare) {
		return nil // it will be done soon
	}
	if most.account == nil && n > 0 {
		src.searchAt = now + searchPause
	}
	return most.account
}
