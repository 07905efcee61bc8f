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
	set     *AccountSet // nil for an account outside of a set
	slot    int         // index in budget.all, -1 after the removal; guarded by budget.mu
	wait    *waiter     // nil if no request waits; changes under budget.mu and mu

	held atomic.Int64 // changes under mu

	mu       sync.Mutex
	body     int64 // bytes reserved for the current request, see Reserve
	reserved int64 // bytes reserved for future output
	peer     peer
	status   // what happens to the account
}

// status is the state of an account apart from its memory. It is guarded by the lock of the account.
type status struct {
	ending  bool // it is being evicted
	counted bool // ending has been counted, see CountEnd
	closed  bool
	lent    bool // other goroutines may still refer to the account, so it is not reused
	working bool // the server processes the request, or makes its response: the holder is not evicted
	making  bool // the server makes a response whose memory is reserved: the holder is not evicted
	met     Cap  // see Met
}

var accounts = sync.Pool{New: func() any { return new(Account) }}

// Open returns an account that holds nothing, for a holder with an address (the zero Addr for none). The holder must call Close
// or CloseIdle in the end.
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
		return // already removed: another goroutine charged and released memory during Close
	}
	last := len(b.all) - 1
	b.all[a.slot] = b.all[last]
	b.all[a.slot].slot = a.slot
	b.all[last] = nil
	b.all, a.slot = b.all[:last], -1
	b.next = slices.DeleteFunc(b.next, func(c candidate) bool { return c.account == a })
	b.closeAddress(a.address)
}

// Force charges n bytes that are held already and cannot be refused. If they do not fit, holders are evicted, possibly this one.
// Output uses its reservation first.
func (a *Account) Force(u Use, n int64) {
	if u == Output {
		a.mu.Lock()
		reserved := min(n, a.reserved)
		a.reserved -= reserved
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

// Release ends the charge of n bytes.
func (a *Account) Release(u Use, n int64) {
	if n == 0 {
		return
	}
	b := a.budget // read before the release: afterwards the account may be reused
	b.force(u, -n)
	a.set.add(u, -n)
	a.address.add(-n)
	a.add(-n)
	b.signal()
}

// add adds n bytes to the account; the budget, the set and the address have counted them already. n may be negative.
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
	} else if large := largeBytes(held) - largeBytes(was); large != 0 {
		b.large.Add(large)
		b.noteGiant(a, held)
	}
	over := held == 0 && a.closed
	a.mu.Unlock()
	if over {
		b.unlink(a)
	}
}

// largeBytes returns held if it is more than Small, otherwise 0.
func largeBytes(held int64) int64 {
	if held <= Small {
		return 0
	}
	return held
}

// noteGiant updates Budget.giant, an account that alone exceeds the bound of the budget. a.mu is held.
func (b *Budget) noteGiant(a *Account, held int64) {
	if bound := b.Bound(); bound > 0 && held > bound && !a.ending {
		b.giant.CompareAndSwap(nil, a)
	} else {
		b.giant.CompareAndSwap(a, nil)
	}
}

// BeginResponse records that a complete response of left bytes waits for the peer to read it. The peer's read rate is measured from
// now on.
func (a *Account) BeginResponse(left int64) {
	now := a.budget.clock()
	a.mu.Lock()
	a.peer.left, a.peer.unsent, a.peer.answers, a.making, a.working = left, left, now, false, false
	a.updateClock(now)
	a.peer.measure(now)
	a.mu.Unlock()
	if a.budget.waiting.Load() > 0 {
		a.budget.wakeFirst(true) // from now on the account can be evicted
	}
}

// EndResponse records that the peer has read all of the response.
func (a *Account) EndResponse() {
	if n := a.endAnswer(); n > Small {
		a.budget.noteRead(n)
	}
}

// AbandonResponse records that the peer will not read the rest of the response.
func (a *Account) AbandonResponse() { a.endAnswer() }

// endAnswer ends the answer that the peer reads, and returns its size, 0 if there is none.
func (a *Account) endAnswer() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.peer.answers == 0 {
		return 0
	}
	a.peer.answers = 0
	return a.peer.unsent
}

// Progress records that the peer has sent or read n bytes, and that left bytes remain (-1: unknown).
func (a *Account) Progress(n, left int64) {
	now := a.budget.clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peer.left = left
	if n > 0 {
		a.peer.moves(n, now)
	}
}

// SetWorking records whether the server is processing the request. While it is, the time does not count against the peer, and the
// holder is not evicted. SetWorking returns false if the holder is already being evicted.
func (a *Account) SetWorking(working bool) bool {
	now := a.budget.clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.making = a.making && working
	if a.working != working {
		a.working = working
		a.updateClock(now)
	}
	return !a.ending
}

// updateClock stops or starts the peer's clock: it runs only while the server waits for the peer. a.mu is held.
func (a *Account) updateClock(now int64) {
	if a.working || a.wait != nil {
		a.peer.stop(now)
	} else {
		a.peer.start(now)
	}
}

// EndRequest turns the reservation for the request body into a reservation for the response, so that no other account can take
// the memory in between.
func (a *Account) EndRequest() {
	a.mu.Lock()
	body, closed := a.body, a.closed
	a.body = 0
	if !closed {
		a.reserved += body
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

// ReserveForOutput turns n bytes that the account holds for use u into a reservation for output.
func (a *Account) ReserveForOutput(u Use, n int64) {
	a.budget.change(u, Output, n)
	a.set.add(u, -n)
	a.addReserved(n)
}

// ForceReserve makes a reservation of n bytes for output that cannot be refused.
func (a *Account) ForceReserve(n int64) {
	a.Force(Output, n)
	a.addReserved(n)
}

// addReserved adds n bytes that are charged for output to the reservation. If the account was closed meanwhile, it releases them.
func (a *Account) addReserved(n int64) {
	a.mu.Lock()
	closed := a.closed
	if !closed {
		a.reserved += n
	}
	a.mu.Unlock()
	if closed {
		a.Release(Output, n)
	}
}

// TrimReservation reduces the reservation for output to limit bytes. It is for a complete response, which will hold no more
// memory.
func (a *Account) TrimReservation(limit int64) {
	a.mu.Lock()
	more := max(a.reserved-limit, 0)
	a.reserved -= more
	a.making = a.making && limit > 0
	a.mu.Unlock()
	a.Release(Output, more)
}

// ReleaseReservation releases the reservation for output.
func (a *Account) ReleaseReservation() { a.TrimReservation(0) }

// Held returns the bytes that the account holds.
func (a *Account) Held() int64 { return a.held.Load() }

// Evicted reports whether the holder is being evicted.
func (a *Account) Evicted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// CountEnd is called by the code that carries out an eviction. It returns true for the first call, which must count the eviction.
// An eviction is not counted when the holder is chosen, because the holder may then release its memory by itself (see Spare).
func (a *Account) CountEnd() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.ending && !a.counted
	a.counted = a.counted || first
	return first
}

// Spare cancels the eviction if the holder has released all of its memory by itself. Otherwise it returns false.
func (a *Account) Spare() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held.Load() != 0 {
		return false
	}
	a.ending = false
	return true
}

// Lend returns the account for use by goroutines that may use it after Close. They get no memory then.
func (a *Account) Lend() *Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lent = true
	return a
}

// CloseIdle releases the reservation for output. If the account then holds nothing and is not being evicted, CloseIdle closes it
// and returns true. The caller must not use the account afterwards.
func (a *Account) CloseIdle() bool {
	a.ReleaseReservation()
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

// Close ends the holder's use of the account. Code that still runs may still hold charged memory, and must release it.
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
	a.ReleaseReservation() // no later reservation is possible, because the account is closed
}
