package memory

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// Small is the memory that each holder may always hold, in bytes: a body of 64 KiB that arrives in pieces, and its head.
const Small = 80 << 10

// A Holder owns an account: it is a connection, a stream or a request.
type Holder interface {
	// End makes the holder release its memory, in the clearest way that its state permits: by a refusal if no response has
	// begun, otherwise by closing. It is called at most once for an account, on any goroutine, and must not block. The account
	// is [Account.Evicted] until it is closed.
	End(a *Account)

	// RemoteAddr returns the address of the peer, for statistics.
	RemoteAddr() netip.AddrPort
}

// An Account records the memory that the server holds for one holder. All methods are safe for concurrent use.
type Account struct {
	budget  *Budget
	holder  Holder
	address *address    // nil for none, or without a cap
	set     *AccountSet // nil for an account outside of groups
	slot    int         // index in budget.all, -1 after the removal; guarded by budget.mu
	wait    *waiter     // nil if no request waits; changes under budget.mu and mu

	held atomic.Int64 // changes under mu

	mu     sync.Mutex
	body   int64 // bytes reserved for the current request, see Reserve
	ahead  int64 // bytes reserved for future output
	peer   peer
	status // what happens to the account
}

// status is the state of an account besides its memory. The lock is the account's.
type status struct {
	ending  bool // it is being evicted
	counted bool // ending has been counted, see CountEnd
	closed  bool
	lent    bool // other goroutines may still refer to it: it is not reused
	working bool // the server works for it
	making  bool // its answer is being made, with a reservation; the server works for it
	met     Cap  // cap that refused it, see Met
}

var accounts = sync.Pool{New: func() any { return new(Account) }}

// Open returns an account that holds nothing, for a holder with an address (the zero Addr for none). It belongs to the holder
// until Close.
func (b *Budget) Open(holder Holder, from netip.Addr) *Account {
	a := accounts.Get().(*Account)
	*a = Account{budget: b, holder: holder}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.maxAddress > 0 && from.IsValid() {
		a.address = b.addressOf(admission.Network(from, 64))
	}
	a.slot = len(b.all)
	b.all = append(b.all, a)
	return a
}

// unlink removes a closed account that holds nothing.
func (b *Budget) unlink(a *Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.slot < 0 {
		return // a goroutine that asked during the close has held something for a moment
	}
	last := len(b.all) - 1
	b.all[a.slot] = b.all[last]
	b.all[a.slot].slot = a.slot
	b.all[last] = nil
	b.all, a.slot = b.all[:last], -1
	b.next = slices.DeleteFunc(b.next, func(c candidate) bool { return c.account == a })
	b.closeAddress(a.address)
}

// Force charges n bytes that are held already and cannot be refused. If they do not fit, holders are evicted, possibly this
// one. Output is taken from its reservation first.
func (a *Account) Force(u Use, n int64) {
	if u == Output {
		a.mu.Lock()
		reserved := min(n, a.ahead)
		a.ahead -= reserved
		a.mu.Unlock()
		n -= reserved
	}
	if n != 0 {
		a.charge(u, n)
		a.budget.balance(a, u)
	}
}

// charge charges n bytes that are held already.
func (a *Account) charge(u Use, n int64) {
	a.budget.force(u, n)
	a.set.add(u, n)
	a.address.add(n)
	a.add(n)
}

// Release releases n bytes.
func (a *Account) Release(u Use, n int64) {
	if n == 0 {
		return
	}
	b := a.budget // an account that holds nothing may be reused
	b.force(u, -n)
	a.set.add(u, -n)
	a.address.add(-n)
	a.add(-n)
	b.signal()
}

// add records n more bytes, which the budget, the set and the address have counted already.
func (a *Account) add(n int64) {
	b := a.budget
	a.mu.Lock()
	held := a.held.Add(n)
	was := held - n
	if was == 0 {
		a.peer.begin(b.clock())
		b.count.Add(1)
	} else if held == 0 {
		b.count.Add(-1)
	}
	if a.ending {
		b.ending.Add(n)
		if a.address != nil {
			a.address.ending.Add(n)
		}
	} else if large := ifLarge(held) - ifLarge(was); large != 0 {
		b.large.Add(large)
		b.noteGiant(a, held)
	}
	over := held == 0 && a.closed
	a.mu.Unlock()
	if over {
		b.unlink(a)
	}
}

// ifLarge returns held if it is more than Small, otherwise 0.
func ifLarge(held int64) int64 {
	if held <= Small {
		return 0
	}
	return held
}

// noteGiant records whether a is the one account that is larger than the bound. a.mu is held.
func (b *Budget) noteGiant(a *Account, held int64) {
	if bound := b.Bound(); bound > 0 && held > bound && !a.ending {
		b.giant.CompareAndSwap(nil, a)
	} else {
		b.giant.CompareAndSwap(a, nil)
	}
}

// Answers records that the peer is to read an answer with left bytes, for which the server does not work any more. Its rate counts
// from here on.
func (a *Account) Answers(left int64) {
	now := a.budget.clock()
	a.mu.Lock()
	a.peer.left, a.peer.unsent, a.peer.answers, a.making, a.working = left, left, now, false, false
	a.runClock(now)
	a.peer.measure(now)
	a.mu.Unlock()
	if a.budget.waiting.Load() > 0 {
		a.budget.wakeFirst(true) // the answer can be evicted from now on
	}
}

// Answered records that the peer has read all of the answer.
func (a *Account) Answered() {
	if n := a.endAnswer(); n > Small {
		a.budget.noteRead(n)
	}
}

// Unanswered records that there is no answer for the peer to read any more.
func (a *Account) Unanswered() { a.endAnswer() }

// endAnswer returns the size of the answer that ends, 0 if there is none.
func (a *Account) endAnswer() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.peer.answers == 0 {
		return 0
	}
	a.peer.answers = 0
	return a.peer.unsent
}

// Moved records that the peer has sent or read n bytes, and that left bytes remain (-1: unknown).
func (a *Account) Moved(n, left int64) {
	now := a.budget.clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peer.left = left
	if n > 0 {
		a.peer.moves(n, now)
	}
}

// Working records whether the server works for the request. Meanwhile the peer's clock is stopped, and the holder is not
// evicted. It returns false if the holder is being evicted already.
func (a *Account) Working(working bool) bool {
	now := a.budget.clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.making = a.making && working
	if a.working != working {
		a.working = working
		a.runClock(now)
	}
	return !a.ending
}

// runClock stops the peer's clock while the server works or the request waits. a.mu is held.
func (a *Account) runClock(now int64) {
	if a.working || a.wait != nil {
		a.peer.stop(now)
	} else {
		a.peer.start(now)
	}
}

// EndRequest turns the memory reserved for the request's body into a reservation for its answer, which may be unread. No other
// account can get the memory in between.
func (a *Account) EndRequest() {
	a.mu.Lock()
	body, closed := a.body, a.closed
	a.body = 0
	if !closed {
		a.ahead += body
	}
	a.mu.Unlock()
	switch {
	case body == 0:
	case closed:
		a.Release(Body, body)
	default:
		a.budget.change(Body, Output, body)
		a.set.add(Body, -body)
	}
}

// ReleaseBody releases n of the bytes reserved for the request's body.
func (a *Account) ReleaseBody(n int64) {
	a.mu.Lock()
	a.body -= n
	a.mu.Unlock()
	a.Release(Body, n)
}

// Move turns n bytes that the account holds for a use that is about to end into a reservation for output.
func (a *Account) Move(u Use, n int64) {
	a.budget.change(u, Output, n)
	a.set.add(u, -n)
	a.reserved(n)
}

// ForceAhead reserves n bytes for output that is about to be held and cannot be refused.
func (a *Account) ForceAhead(n int64) {
	a.Force(Output, n)
	a.reserved(n)
}

// reserved records that n bytes held for output are a reservation. For an account that was closed meanwhile they are released.
func (a *Account) reserved(n int64) {
	a.mu.Lock()
	closed := a.closed
	if !closed {
		a.ahead += n
	}
	a.mu.Unlock()
	if closed {
		a.Release(Output, n)
	}
}

// KeepAhead releases the reservation for output beyond most bytes: the answer is complete and will hold no more.
func (a *Account) KeepAhead(most int64) {
	a.mu.Lock()
	more := max(a.ahead-most, 0)
	a.ahead -= more
	a.making = a.making && most > 0
	a.mu.Unlock()
	a.Release(Output, more)
}

// EndAhead releases the reservation for output.
func (a *Account) EndAhead() { a.KeepAhead(0) }

// Held returns the bytes that the account holds.
func (a *Account) Held() int64 { return a.held.Load() }

// Evicted reports whether the holder is being evicted.
func (a *Account) Evicted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// CountEnd reports true once, to the goroutine that carries the eviction out and counts it. A chosen holder may still release
// its memory by itself.
func (a *Account) CountEnd() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.ending && !a.counted
	a.counted = a.counted || first
	return first
}

// Spare cancels the eviction of a holder that has released everything by itself. It returns false if something is still held.
func (a *Account) Spare() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held.Load() != 0 {
		return false
	}
	a.ending = false
	return true
}

// Lend returns the account for use by other goroutines than the holder's. After the account is closed they get no memory.
func (a *Account) Lend() *Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lent = true
	return a
}

// CloseIdle closes an account that holds nothing besides a reservation for output and is not being evicted, and reports whether
// it did. The holder opens another one when needed.
func (a *Account) CloseIdle() bool {
	a.EndAhead()
	a.mu.Lock()
	idle := a.held.Load() == 0 && !a.ending && a.wait == nil
	a.closed = a.closed || idle
	again := idle && !a.lent
	a.mu.Unlock()
	if idle {
		a.budget.unlink(a)
	}
	if again {
		accounts.Put(a)
	}
	return idle
}

// Close ends the holder's use of the account. Memory that is still in use by running code is released when that code ends.
func (a *Account) Close() {
	a.Unwait()
	a.mu.Lock()
	over := a.held.Load() == 0 && !a.closed
	a.closed = true
	a.mu.Unlock()
	if over {
		a.budget.unlink(a)
		return
	}
	a.EndAhead() // later output finds the account closed
}
