package admission

import (
	"sync/atomic"
	"time"
)

// A Cap is a limit on the memory of one holder, independent of the free memory.
type Cap uint8

const (
	NoCap         Cap = iota
	ConnectionCap     // Holders.MaxConnection
	AddressCap        // Holders.MaxAddress
	PartsCap          // MaxAddress, because of other accounts of the group
	BudgetCap         // the request exceeds the budget
)

// A Group is a set of accounts that MaxConnection bounds together, not counting responses: those of an HTTP/2 connection and
// its streams. The zero value is ready for use.
type Group struct {
	held atomic.Int64 // bytes, without responses
	all  atomic.Int64 // bytes, with responses
	turn atomic.Bool  // one of them waits as if its address were modest, see takeTurn
}

// alone reports whether the accounts of the group other than a hold little.
func (g *Group) alone(a *Account) bool { return g != nil && g.all.Load()-a.Held() <= leastShare }

// takeTurn lets one waiting account of a group whose other accounts hold little precede the other accounts of a greedy address.
// Each group has one turn at a time, so a connection with many requests does not delay other connections.
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

// Crowded reports whether a group holds more than a little of unread responses while large holders have used up nearly all of
// their share. The group's next requests wait then.
func (h *Holders) Crowded(g *Group) bool {
	bound := h.budget.Bound()
	return bound > 0 && g.all.Load()-g.held.Load() > leastShare && h.budget.Held() > bound-bound/smallShare
}

func (g *Group) note(u Use, n int64) {
	if g != nil && u != Output {
		g.held.Add(n)
	}
}

// take adds n bytes, and returns false if the group would exceed most, unless most is 0.
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

// Join adds the account, which must hold nothing yet, to a group; nil is no group.
func (a *Account) Join(g *Group) { a.group = g }

// SetCaps limits the body of a request, in addition to which the connection may hold reading bytes, and the memory of an
// address. 0 is no limit.
func (h *Holders) SetCaps(body, reading, address int64) {
	h.maxBody, h.MaxAddress = body, address
	if body > 0 {
		h.MaxConnection = body + reading
	}
}

// MostBody returns the maximum size of a body; 0 is no limit.
func (h *Holders) MostBody() int64 {
	most := h.budget.Bound()
	for _, bound := range [...]int64{h.maxBody, h.MaxAddress} {
		if bound > 0 && (most <= 0 || bound < most) {
			most = bound
		}
	}
	return most
}

// MostGrown returns the new size, in bytes, of a buffer of has bytes that must hold want. If the length of the data is unknown
// and memory is scarce, the buffer grows by at most a quarter. A part of the address's limit stays free for memory other than
// the body.
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

// Why describes the reason of a refusal.
func (h *Holders) Why(met Cap) string {
	switch met {
	case ConnectionCap, PartsCap:
		return "the connection holds as much memory as one may"
	case AddressCap:
		return "its address holds as much memory as one may"
	}
	return "the " + h.budget.String() + " is used up"
}

// Met returns the cap that refused memory to the account or led to its eviction; NoCap if the budget was exhausted.
func (a *Account) Met() Cap {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.met
}

// Capped reports whether the reason is a configured cap.
func (c Cap) Capped() bool { return c == ConnectionCap || c == PartsCap || c == AddressCap }

func (a *Account) meets(c Cap) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.met = c
}

// overConnection returns the cap that n more bytes for a use would exceed, of the account or of its group. Responses are not
// capped, since the server makes them.
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

// overAddress returns the bytes by which a's address would exceed its limit with n more bytes, after all current evictions.
func (h *Holders) overAddress(a *Account, n int64) int64 {
	if h.MaxAddress <= 0 || !a.source.known {
		return 0
	}
	return a.source.held.Load() - a.source.ending.Load() + n - h.MaxAddress
}

// fitsAddress decides for take whether n more bytes fit. h.capping is held. Memory of holders being evicted counts as free for
// small holders only.
func (h *Holders) fitsAddress(a *Account, n int64) bool {
	over := h.overAddress(a, n)
	if a.Held()+n > leastShare {
		over += a.source.ending.Load()
	}
	return over <= 0
}

// searchPause is the time without a further search at an address where no holder could be evicted.
const searchPause = int64(20 * time.Millisecond)

// makeRoomAt evicts holders of a's address until it may hold n more bytes or no candidate is left: slow holders first, the
// costliest of them first. For an account that stays small, large and slow holders are evicted; for others only slow and
// costlier ones. With n = 0, for memory that a holds already, any holder may be evicted, also a itself, except a single
// response that its client reads.
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

// costliestAt returns the next holder of a's address to evict, or nil.
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
		case n == 0: // the memory cannot be refused
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
		return nil // it finishes soon
	}
	if most.account == nil && n > 0 {
		src.searchAt = now + searchPause
	}
	return most.account
}
