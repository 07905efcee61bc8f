package admission

import (
	"cmp"
	"hash/maphash"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Holders divides what is held in a Budget by holder: there is an Account for each
// connection, and a sum for each address. Nothing is decided for all clients at once, only
// for one holder, by what that holder does:
//
//	held by one         when the budget has no room for more
//	at most Fair()      room is made at once, by ending others; it never waits, but
//	                    for a body of unknown length, for a while, from 80 KiB on
//	more                it waits, alone, and others much costlier make room; when it has
//	                    waited for roomWait, the costliest of all does, which may be itself
//
// Holders of little that wait for much can fill the budget together, so that none would get on: if
// nobody else can make room, they do for each other. Bodies larger than Fair get their room one
// after the other, see line.go. An address that would hold more than half of the budget leaves
// what room there is to clients that wait at other addresses, or whose own connection holds
// little else (yields); its waiters, and its bodies that are being sent, make room for those first.
// A client whose address holds nothing does not wait for the room of its answer while there is
// some (ReserveFirst).
//
// Holders of more than leastShare leave a quarter of the budget to the others, as far as they
// ask beforehand.
//
// Who is ended is the holder of the greatest cost: bytes held × the time until they are
// expected to be free. Slow clients are ended before bodies that come at a good rate, and these before
// answers that are taken at a good rate: rather than end those, the bound is exceeded by an eighth. A
// holder that has just begun to hold a little counts as one whose body comes. A holder within Fair()
// is ended only when nobody holds more than that and all of them together hold more than there is. A
// holder is not ended while the server works for it, since that would free nothing.
//
// One answer may be larger than the budget. It has been made, so it is kept beside the
// budget, as long as it is the only one and nobody needs to be ended.
//
// Invariant: held − ending − spared ≤ bound after each call; an eighth more if only answers that are
// taken at a good rate are left to be ended. ending is what those hold that are being ended. Locks are
// taken in the order mu, that of a shard, that of an account.
type Holders struct {
	budget *Budget
	now    func() int64 // ns on a monotonic clock

	// MaxConnection and MaxAddress bound what one account and the accounts of one
	// address may hold, in bytes, see caps.go; 0 is no bound but the budget's. They must not change
	// after the first call of Open.
	MaxConnection, MaxAddress int64

	maxBody int64 // of a request, see SetCaps

	// OnRoom, if set, is called when something was given back while somebody waits. It must not
	// wait, nor change after the first call of Open.
	OnRoom func()

	count     atomic.Int64 // accounts that hold something
	ending    atomic.Int64 // bytes
	spared    atomic.Int64 // bytes of the one answer that is larger than the budget
	much      atomic.Int64 // bytes of those that hold more than leastShare, without ending and spared
	waiting   atomic.Int64 // accounts that wait for room
	waitSince atomic.Int64 // since when some have; 0 if none does
	modest    atomic.Int64 // of these those whose addresses are modest, see yields
	want      atomic.Int64 // the least that any of them wants, in bytes; much, when all were told to look
	ended     atomic.Uint64

	promised  atomic.Int64 // bytes, by all probes that have a place; changes under probing or falls
	blocked   atomic.Int64 // ... by those whose actions block; likewise
	probesAt  atomic.Int64 // when there are as many large answers of probes again as there may be at once; changes under probing
	newcomers atomic.Int64 // accounts that wait to be probes, of addresses that hold nothing else
	denied    atomic.Bool  // somebody was not let be a probe, and is to be told when it may

	probing sync.Mutex // held while one becomes a probe

	taking  sync.Mutex // held while one that holds much takes more
	capping sync.Mutex // held while memory is taken, if there is a MaxAddress
	mu      sync.Mutex
	large   []*Account  // those that hold more than leastShare
	next    []candidate // to be ended, the first last; see victim
	nextAt  int64       // when they were found
	listed  bool        // ... for who asks now
	all     bool        // they are not large
	waiters bool        // some of them are not, and wait for much
	before  int         // ... who go only while nobody who holds much stands worse than that
	lone    *Account    // whose bytes are spared
	changed chan struct{}

	line   line // bodies that are larger than Fair
	shards [holderShards]holderShard
}

// A holderShard has the accounts of some addresses.
type holderShard struct {
	mu      sync.Mutex
	sources map[addressKey]*source
}

const holderShards = 16 // a power of two

// A source is an address, or all peers without one.
type source struct {
	key      addressKey
	known    bool // it is an address
	held     atomic.Int64
	ending   atomic.Int64 // of that by those who are being ended
	accounts *Account     // a list
	n        int
	searchAt int64 // when somebody is looked for again who could make room, see costliestAt
}

// leastShare is what every holder may hold, in bytes: a body of 64 KiB that comes in
// pieces, with its head. See Fair.
const leastShare = 80 << 10

// NewHolders returns accounts whose memory is budget's. now is a monotonic clock in ns.
func NewHolders(budget *Budget, now func() int64) *Holders {
	h := &Holders{budget: budget, now: now, changed: make(chan struct{})}
	h.want.Store(math.MaxInt64 / 2)
	for i := range h.shards {
		h.shards[i].sources = make(map[addressKey]*source)
	}
	return h
}

// Clock returns a clock for NewHolders.
func Clock() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}

// Fair returns the bytes that every holder may hold without being ended, refused or
// delayed because of others, as long as anybody holds more: half of the budget divided
// by how many hold something, and never less than leastShare.
func (h *Holders) Fair() int64 {
	bound := h.budget.Bound()
	if bound <= 0 {
		return math.MaxInt64
	}
	return max(leastShare, bound/(2*max(h.count.Load(), 1)))
}

// Open returns an account for one connection from the given address (the zero Addr for
// none), which holds nothing yet. It belongs to the connection until Close.
func (h *Holders) Open(holder Holder, from netip.Addr) *Account {
	a := accounts.Get().(*Account)
	*a = Account{holders: h, holder: holder, slot: -1}
	var key addressKey
	if from.IsValid() {
		key = keyOf(from)
	}
	s := h.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.sources[key]
	if src == nil {
		src = sources.Get().(*source)
		src.key, src.known, src.searchAt = key, from.IsValid(), 0
		s.sources[key] = src
	}
	a.source, a.nextOf = src, src.accounts
	if a.nextOf != nil {
		a.nextOf.prevOf = a
	}
	src.accounts = a
	src.n++
	return a
}

var (
	accounts = sync.Pool{New: func() any { return new(Account) }}
	sources  = sync.Pool{New: func() any { return new(source) }}
)

// shardSeed keeps clients from choosing addresses of one shard.
var shardSeed = maphash.MakeSeed()

func (h *Holders) shardOf(key addressKey) *holderShard {
	return &h.shards[maphash.Bytes(shardSeed, key[:])%holderShards]
}

// unlink takes a closed account that holds nothing out of everything.
func (h *Holders) unlink(a *Account) {
	h.relist(a)
	h.mu.Lock()
	h.next = slices.DeleteFunc(h.next, func(c candidate) bool { return c.account == a })
	h.mu.Unlock()
	src := a.source
	s := h.shardOf(src.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.prevOf != nil {
		a.prevOf.nextOf = a.nextOf
	} else {
		src.accounts = a.nextOf
	}
	if a.nextOf != nil {
		a.nextOf.prevOf = a.prevOf
	}
	a.prevOf, a.nextOf = nil, nil
	if src.n--; src.n == 0 {
		delete(s.sources, src.key)
		sources.Put(src) // it holds nothing any more
	}
}

// relist sees to it that h.large has a exactly if it holds much.
func (h *Holders) relist(a *Account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch much := a.held.Load() > leastShare; {
	case much && a.slot < 0:
		a.slot = int32(len(h.large))
		h.large = append(h.large, a)
	case !much && a.slot >= 0:
		last := h.large[len(h.large)-1]
		h.large[a.slot], last.slot = last, a.slot
		h.large[len(h.large)-1] = nil
		h.large = h.large[:len(h.large)-1]
		a.slot = -1
		if a.lone {
			h.spared.Add(-a.held.Load())
			a.lone, h.lone = false, nil
			a.weigh()
		}
	}
}

// signal wakes those who wait for room, if there is some for one of them.
func (h *Holders) signal() {
	if h.waiting.Load() != 0 && (h.letsProbe() || h.budget.Held()+h.want.Load() <= h.budget.Bound()) {
		h.wake()
	}
}

// signalLine wakes them, if bodies stand in line, though there may be none for the one that wants least: much was given
// back, or is not wanted any more, and it may be another's turn.
func (h *Holders) signalLine() {
	if h.waiting.Load() == 0 {
		return
	}
	h.line.mu.Lock()
	stand := h.line.size() > 0
	h.line.mu.Unlock()
	if stand {
		h.wake()
	}
}

// wake has those look again who wait.
func (h *Holders) wake() {
	h.want.Store(math.MaxInt64 / 2)
	if h.OnRoom != nil {
		h.OnRoom()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// room returns a channel that is closed when there may be more room.
func (h *Holders) room() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Crowding reports whether half of the budget is held, or somebody waits for room.
func (h *Holders) Crowding() bool {
	bound := h.budget.Bound()
	return bound > 0 && (h.waiting.Load() > 0 || h.budget.Held()-h.budget.HeldFor(InCache) > bound/2)
}

// Count returns how many accounts hold something.
func (h *Holders) Count() int { return int(h.count.Load()) }

// Waiting returns how many accounts wait for room.
func (h *Holders) Waiting() int { return int(h.waiting.Load()) }

// WaitingFor returns for how long some have waited without a break, 0 if none does.
func (h *Holders) WaitingFor() time.Duration {
	since := h.waitSince.Load()
	if since == 0 {
		return 0
	}
	return max(time.Duration(h.now()-since), 1)
}

// Ending returns the bytes of holders that are being ended.
func (h *Holders) Ending() int64 { return h.ending.Load() }

// Ended returns how many holders were ended to make room.
func (h *Holders) Ended() uint64 { return h.ended.Load() }

// A Holding says what one account holds.
type Holding struct {
	Remote netip.AddrPort
	Held   int64         // bytes
	For    time.Duration // since it began to hold something
	Free   time.Duration // until that is expected to be free
	Ending bool          // it is being ended
}

// Largest returns the n accounts that hold most, the largest first.
func (h *Holders) Largest(n int) []Holding {
	var most []Holding
	now := h.now()
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		for _, src := range s.sources {
			for a := src.accounts; a != nil; a = a.nextOf {
				a.mu.Lock()
				if held := a.held.Load(); held > 0 && (len(most) < n || held > most[len(most)-1].Held) {
					x := Holding{a.holder.RemoteAddr(), held, time.Duration(now - a.since), time.Duration(a.expected(now)), a.ending}
					at, _ := slices.BinarySearchFunc(most, x, func(a, b Holding) int { return cmp.Compare(b.Held, a.Held) })
					most = slices.Insert(most, at, x)
					most = most[:min(len(most), n)]
				}
				a.mu.Unlock()
			}
		}
		s.mu.Unlock()
	}
	return most
}
