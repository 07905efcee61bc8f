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

// Holders divides the memory of a Budget by holder: an Account for each connection, and a sum for each address. Decisions
// concern one holder and depend on that holder's behavior:
//
//	held by one         if the budget has no room for more
//	at most Fair()      other holders are evicted at once. It never waits, except for a
//	                    body of unknown length above 80 KiB, for a while
//	more                it waits, and much costlier holders are evicted. After roomWait the
//	                    costliest of all is evicted, possibly itself
//
// Small holders that wait for large amounts can fill the budget together and block each other. If no other holder can be
// evicted, they are evicted for each other. Bodies larger than Fair get memory one after the other, see line.go. An address
// that would hold more than half of the budget yields the free memory to clients waiting at other addresses, or whose own
// connection holds little else. Its waiting accounts, and its incoming bodies, are evicted for those first. A client whose
// address holds nothing does not wait for the memory of its response while some is free (ReserveFirst).
//
// Holders of more than leastShare leave a quarter of the budget to the others, for memory that is reserved in advance.
//
// The holder of the greatest cost is evicted: bytes held × time until they are expected to be free. Slow clients are evicted
// before bodies that arrive at a good rate, and these before responses that are read at a good rate: rather than evict the
// latter, the bound is exceeded by an eighth. A holder that has just begun to hold a little is treated like an arriving body. A
// holder within Fair() is evicted only if no holder exceeds Fair() and all of them together exceed the budget. A holder is not
// evicted while the server works for it, since that would free nothing.
//
// One response may be larger than the budget. It exists already, so it is kept beside the budget, as long as it is the only one
// and no eviction is needed.
//
// Invariant: held − ending − spared ≤ bound after each call; an eighth more if only responses that are read at a good
// rate are left to evict. ending is the memory of holders being evicted. Locks are acquired in the order mu, that of a shard,
// that of an account.
type Holders struct {
	budget *Budget
	now    func() int64 // ns on a monotonic clock

	// MaxConnection and MaxAddress limit the memory of one account and of the accounts of one address, in bytes, see caps.go; 0
	// is no limit but the budget's. They must not change after the first call of Open.
	MaxConnection, MaxAddress int64

	maxBody int64 // limit of a request's body, see SetCaps

	count     atomic.Int64 // accounts that hold something
	ending    atomic.Int64 // bytes
	spared    atomic.Int64 // bytes of the one response larger than the budget
	much      atomic.Int64 // bytes of holders of more than leastShare, without ending and spared
	waiting   atomic.Int64 // accounts that wait for memory
	waitSince atomic.Int64 // time since which some account waits; 0 if none does
	modest    atomic.Int64 // waiting accounts with modest addresses, see yields
	want      atomic.Int64 // smallest amount, in bytes, that an account waits for; a large value after all were woken
	ended     atomic.Uint64

	promised  atomic.Int64 // bytes of all probes with a place; changes under probing or decreases
	blocked   atomic.Int64 // bytes of probes whose actions block; likewise
	probesAt  atomic.Int64 // time at which the burst of large probe responses is available again; changes under probing
	newcomers atomic.Int64 // accounts of otherwise idle addresses that wait to be probes
	denied    atomic.Bool  // a probe was denied, and its account is to be woken when one is permitted

	probing sync.Mutex // held while an account becomes a probe

	taking  sync.Mutex // held while a large holder reserves more
	capping sync.Mutex // held while memory is reserved, if there is a MaxAddress
	mu      sync.Mutex
	large   []*Account  // holders of more than leastShare
	next    []candidate // candidates for eviction, the first one last; see victim
	nextAt  int64       // time at which they were found
	listed  bool        // they were found for the current request
	all     bool        // they are small holders
	waiters bool        // some of them are small and wait for large amounts
	before  int         // those are evicted only while no large holder has a lower standing than this
	lone    *Account    // account whose bytes are spared
	onRoom  []func()
	changed chan struct{}

	line   line // bodies larger than Fair
	shards [holderShards]holderShard
}

// A holderShard has the accounts of some addresses.
type holderShard struct {
	mu      sync.Mutex
	sources map[addressKey]*source
}

const holderShards = 16 // a power of two

// A source is an address, or all peers without an address.
type source struct {
	key      addressKey
	known    bool // it is an address
	held     atomic.Int64
	ending   atomic.Int64 // bytes held by accounts being evicted
	accounts *Account     // a list
	n        int
	searchAt int64 // time of the next search for a holder to evict, see costliestAt
}

// leastShare is the memory that each holder may always hold, in bytes: a body of 64 KiB that arrives in pieces, and its head.
// See Fair.
const leastShare = 80 << 10

// NewHolders returns Holders that divide budget. now is a monotonic clock in ns.
func NewHolders(budget *Budget, now func() int64) *Holders {
	h := &Holders{budget: budget, now: now, changed: make(chan struct{})}
	h.want.Store(math.MaxInt64 / 2)
	for i := range h.shards {
		h.shards[i].sources = make(map[addressKey]*source)
	}
	return h
}

// OnRoom has f called when memory is released while an account waits. f must not block. Each engine whose connections share h
// calls it once.
func (h *Holders) OnRoom(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onRoom = append(h.onRoom, f)
}

// Clock returns a clock for NewHolders.
func Clock() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}

// Fair returns the bytes that each holder may hold without eviction, refusal or delay because of others, as long as any account
// holds more: half of the budget divided by the number of holders, and at least leastShare.
func (h *Holders) Fair() int64 {
	bound := h.budget.Bound()
	if bound <= 0 {
		return math.MaxInt64
	}
	return max(leastShare, bound/(2*max(h.count.Load(), 1)))
}

// Open returns an account that holds nothing, for one connection from an address (the zero Addr for none). It belongs to the
// connection until Close.
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

// unlink removes a closed account that holds nothing from all lists.
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
		sources.Put(src) // it holds nothing
	}
}

// relist adds a to h.large if it is a large holder, and removes it otherwise.
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

// signal wakes waiting accounts if there is memory for one of them.
func (h *Holders) signal() {
	if h.waiting.Load() != 0 && (h.letsProbe() || h.budget.Held()+h.want.Load() <= h.budget.Bound()) {
		h.wake()
	}
}

// signalLine wakes bodies in the line even if the smallest request does not fit: memory was released or is not needed any more,
// and the first of the line may have changed.
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

// wake wakes all waiting accounts.
func (h *Holders) wake() {
	h.want.Store(math.MaxInt64 / 2)
	h.mu.Lock()
	told := h.onRoom // only appended to
	h.mu.Unlock()
	for _, f := range told {
		f()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// room returns a channel that is closed when more memory may be free.
func (h *Holders) room() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Crowding reports whether half of the budget is held, or an account waits for memory.
func (h *Holders) Crowding() bool {
	bound := h.budget.Bound()
	return bound > 0 && (h.waiting.Load() > 0 || h.budget.Held()-h.budget.HeldFor(InCache) > bound/2)
}

// Count returns the number of accounts that hold something.
func (h *Holders) Count() int { return int(h.count.Load()) }

// Waiting returns the number of accounts that wait for memory.
func (h *Holders) Waiting() int { return int(h.waiting.Load()) }

// WaitingFor returns the time for which at least one account has been waiting; 0 if none waits.
func (h *Holders) WaitingFor() time.Duration {
	since := h.waitSince.Load()
	if since == 0 {
		return 0
	}
	return max(time.Duration(h.now()-since), 1)
}

// Ending returns the bytes of holders being evicted.
func (h *Holders) Ending() int64 { return h.ending.Load() }

// Ended returns the number of evicted holders.
func (h *Holders) Ended() uint64 { return h.ended.Load() }

// A Holding describes the memory of one account.
type Holding struct {
	Remote netip.AddrPort
	Held   int64         // bytes
	For    time.Duration // since it began to hold something
	Free   time.Duration // until it is expected to be free
	Ending bool          // it is being evicted
}

// Largest returns the n largest accounts, in descending order.
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
