package memory

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Use is a purpose for which memory of a budget is held.
type Use uint8

const (
	Input   Use = iota // received and not yet used by an action, and the state of handshakes
	Body               // request bodies that an action reads completely, and the values decoded from them
	Output             // answers that clients have not read
	InCache            // cached data, see Kept
	uses
)

// String returns the use's name as statistics show it.
func (u Use) String() string { return [...]string{"input", "body", "output", "cache"}[u] }

// Uses yields every use.
func Uses(yield func(Use) bool) {
	for u := range uses {
		if !yield(u) {
			return
		}
	}
}

// A Budget bounds the memory held for clients, in bytes. Only unfinished work is counted: a request that is answered at once
// holds nothing. The capacity of buffers counts, not their length. All methods are safe for concurrent use. The zero Budget
// counts, but has no bound.
//
// Invariant: held is the sum of by, and each element of by is ≥ 0.
type Budget struct {
	bound   atomic.Int64
	held    atomic.Int64
	peak    atomic.Int64
	refused atomic.Uint64
	by      [uses]atomic.Int64
	keeps   keeps

	count   atomic.Int64            // accounts that hold something
	ending  atomic.Int64            // bytes of evicted accounts
	large   atomic.Int64            // bytes of accounts that hold more than Small and are not evicted
	giant   atomic.Pointer[Account] // an account that alone exceeds the bound, or nil; see noteGiant
	waiting atomic.Int64            // length of queue
	ended   atomic.Uint64

	// MaxWait is the maximum time that a request waits; 0 for ten seconds. It must not change after the first call of Open.
	MaxWait time.Duration

	// Now is a monotonic clock in ns; nil for Clock. It must not change after the first call of Open.
	Now func() int64

	caps

	mu        sync.Mutex
	all       []*Account // open accounts
	queue     []*waiter  // requests for memory that wait, in order of arrival
	next      []candidate
	nextAt    int64 // time at which next was made; 0: it must be made again
	addresses map[netip.Addr]*address
	unread    unread
}

// New returns a budget of bound bytes; 0 is no bound.
func New(bound int64) *Budget {
	b := new(Budget)
	b.SetBound(bound)
	return b
}

var start = time.Now()

// Clock is the system's monotonic clock, in ns.
func Clock() int64 { return int64(time.Since(start)) }

func (b *Budget) clock() int64 {
	if b.Now != nil {
		return b.Now()
	}
	return Clock()
}

func (b *Budget) maxWait() time.Duration { return cmp.Or(b.MaxWait, 10*time.Second) }

// SetBound changes the bound; 0 is no bound. It does not evict holders.
func (b *Budget) SetBound(bound int64) { b.bound.Store(bound) }

// reserve reserves n bytes for a use if they fit into the bound plus beyond bytes.
func (b *Budget) reserve(u Use, n, beyond int64) bool {
	for {
		held, bound := b.held.Load(), b.bound.Load()
		if bound > 0 && held+n > bound+beyond {
			if b.dropKept(held + n - bound - beyond) {
				continue
			}
			return false
		}
		if b.held.CompareAndSwap(held, held+n) {
			b.charge(u, n)
			return true
		}
	}
}

// force counts n bytes that are held already. n may be negative.
func (b *Budget) force(u Use, n int64) {
	b.held.Add(n)
	b.charge(u, n)
}

func (b *Budget) charge(u Use, n int64) {
	b.by[u].Add(n)
	// The peak is only approximate: when two goroutines store it at once, the lower value may remain.
	if held := b.held.Load(); held > b.peak.Load() {
		b.peak.Store(held)
	}
}

// change moves n bytes from one use to another.
func (b *Budget) change(from, to Use, n int64) {
	b.by[from].Add(-n)
	b.by[to].Add(n)
}

// Force charges n bytes that no account is charged for, such as the buffers of a call, and evicts holders if they do not fit. A
// negative n releases bytes.
func (b *Budget) Force(u Use, n int64) {
	b.force(u, n)
	if n < 0 {
		b.signal()
	} else if b.over(0) > 0 {
		b.makeRoom(nil, 0, nil, false)
	}
}

// Tight reports whether at least three quarters of the budget are held.
func (b *Budget) Tight() bool {
	bound := b.bound.Load()
	return bound > 0 && b.held.Load() >= bound-bound/4
}

// Crowding reports whether more than half of the budget is held, without caches, or a request waits for memory.
func (b *Budget) Crowding() bool {
	bound := b.Bound()
	return bound > 0 && (b.waiting.Load() > 0 || b.Held()-b.HeldFor(InCache) > bound/2)
}

// Bound returns the bound in bytes, 0 for none.
func (b *Budget) Bound() int64 { return b.bound.Load() }

// String names the limit for messages: "memory budget of 4 MiB".
func (b *Budget) String() string {
	bound := b.Bound()
	switch {
	case bound <= 0:
		return "memory budget without a bound"
	case bound < 10<<20:
		return fmt.Sprintf("memory budget of %d KiB", (bound+1<<9)>>10)
	}
	return fmt.Sprintf("memory budget of %d MiB", (bound+1<<19)>>20)
}

// Held returns the bytes held for all uses.
func (b *Budget) Held() int64 { return b.held.Load() }

// HeldFor returns the bytes held for one use.
func (b *Budget) HeldFor(u Use) int64 { return b.by[u].Load() }

// Peak returns about the maximum number of bytes that were held at once.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Refused returns the number of refused requests for memory.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// Count returns the number of accounts that hold something.
func (b *Budget) Count() int { return int(b.count.Load()) }

// Ending returns the bytes of holders that are being evicted.
func (b *Budget) Ending() int64 { return b.ending.Load() }

// Ended returns the number of evicted holders.
func (b *Budget) Ended() uint64 { return b.ended.Load() }

// A Holding describes the memory of one account.
type Holding struct {
	Remote netip.AddrPort
	Held   int64         // bytes
	For    time.Duration // since the account began to hold something
	Free   time.Duration // until the memory is expected to be free
	Ending bool          // the holder is being evicted
}

// Largest returns the n largest accounts, in descending order.
func (b *Budget) Largest(n int) []Holding {
	var most []Holding
	now := b.clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.all {
		held := a.held.Load()
		if held == 0 || len(most) == n && held <= most[n-1].Held {
			continue
		}
		a.mu.Lock()
		x := Holding{a.holder.RemoteAddr(), held, time.Duration(now - a.peer.since), time.Duration(a.peer.expected(now, held)), a.ending}
		a.mu.Unlock()
		at, _ := slices.BinarySearchFunc(most, x, func(a, b Holding) int { return cmp.Compare(b.Held, a.Held) })
		most = slices.Insert(most, at, x)
		most = most[:min(len(most), n)]
	}
	return most
}
