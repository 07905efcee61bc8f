package memory

import (
	"net/netip"
	"sync/atomic"
)

// A Cap is a limit on the memory of a connection or an address, which applies also while memory is free.
type Cap uint8

const (
	NoCap         Cap = iota
	ConnectionCap     // the limit of a request body, or of a connection
	AddressCap        // the limit of an address
	PartsCap          // the limit of a connection, reached because of other accounts of its set
	BudgetCap         // the request exceeds the budget
)

// Capped reports whether the reason is a configured cap.
func (c Cap) Capped() bool { return c == ConnectionCap || c == PartsCap || c == AddressCap }

// An AccountSet is a set of accounts whose sum is bounded by the cap of a connection, without answers: the accounts of an HTTP/2
// connection and its streams. The zero value is ready for use. Safe for concurrent use.
type AccountSet struct{ held atomic.Int64 }

func (g *AccountSet) add(u Use, n int64) {
	if g != nil && u != Output {
		g.held.Add(n)
	}
}

// reserve adds n bytes. If the set would exceed limit, it adds nothing and returns false. 0 is no limit.
func (g *AccountSet) reserve(u Use, n, limit int64) bool {
	if g == nil || u == Output {
		return true
	}
	return takeUpTo(&g.held, n, limit)
}

// takeUpTo adds n to a sum, unless the sum would exceed limit. 0 is no limit.
func takeUpTo(sum *atomic.Int64, n, limit int64) bool {
	for {
		held := sum.Load()
		if limit > 0 && held+n > limit {
			return false
		}
		if sum.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Join adds the account, which must hold nothing yet, to a set; nil is no set.
func (a *Account) Join(g *AccountSet) { a.set = g }

// An address is the sum over the accounts of one address, if addresses have a cap.
type address struct {
	ip     netip.Addr
	n      int          // accounts; guarded by the lock of the budget
	held   atomic.Int64 // bytes
	ending atomic.Int64 // bytes of accounts that are being evicted
}

func (at *address) add(n int64) {
	if at != nil {
		at.held.Add(n)
	}
}

// addressOf returns the sum of an address, and counts another account in it. b.mu is held.
func (b *Budget) addressOf(ip netip.Addr) *address {
	at := b.addresses[ip]
	if at == nil {
		if b.addresses == nil {
			b.addresses = make(map[netip.Addr]*address)
		}
		at = &address{ip: ip}
		b.addresses[ip] = at
	}
	at.n++
	return at
}

// closeAddress removes an account from the sum of its address, which may be nil. b.mu is held.
func (b *Budget) closeAddress(at *address) {
	if at == nil {
		return
	}
	if at.n--; at.n == 0 {
		delete(b.addresses, at.ip)
	}
}

// caps are the limits of SetCaps, in bytes; 0 is none.
type caps struct{ maxBody, maxConnection, maxAddress int64 }

// SetCaps sets limits in bytes; 0 is no limit. body limits the body of a request. A connection may hold reading bytes in addition
// to it. address limits the memory of an address. SetCaps must not be called after the first call of Open.
func (b *Budget) SetCaps(body, reading, address int64) {
	b.maxBody, b.maxConnection, b.maxAddress = body, 0, address
	if body > 0 {
		b.maxConnection = body + reading
	}
}

// MaxAddress returns the limit on the memory of an address; 0 is none.
func (b *Budget) MaxAddress() int64 { return b.maxAddress }

// MostBody returns the maximum size of a body; 0 is no limit.
func (b *Budget) MostBody() int64 {
	most := b.Bound()
	for _, bound := range [...]int64{b.maxBody, b.maxAddress} {
		if bound > 0 && (most <= 0 || bound < most) {
			most = bound
		}
	}
	return most
}

// MostAhead returns the maximum number of bytes that are reserved for a body of unknown length before they arrive; 0 is no limit.
// With such a reservation large bodies arrive one after the other and do not block each other.
func (b *Budget) MostAhead() int64 {
	if most := b.MostBody(); most > 0 {
		return most / 4
	}
	return 0
}

// MostGrown returns the new size of a buffer of size has that should grow to size want, in bytes. unknown is true if the length
// of the data is unknown. Then a buffer that is large in relation to the bound grows by at most a quarter, and a part of the
// limit of the address stays free for other memory than the body.
func (b *Budget) MostGrown(want, has int, unknown bool) int {
	bound := b.Bound()
	if b.maxAddress > 0 && (bound <= 0 || b.maxAddress < bound) {
		bound = b.maxAddress
	}
	if unknown && bound > 0 && has > Small && 8*int64(want) > bound {
		want = min(want, has+has/4)
	}
	if beside := b.maxAddress - Small; unknown && int64(has) < beside {
		want = int(min(int64(want), beside))
	}
	if most := b.MostBody(); most > int64(has) {
		return int(min(int64(want), most))
	}
	return want
}

// Why describes the reason for a refusal, for the client.
func (b *Budget) Why(met Cap) string {
	switch met {
	case ConnectionCap, PartsCap:
		return "the connection is at its memory limit"
	case AddressCap:
		return "the address of the client is at its memory limit"
	}
	return "the " + b.String() + " is used up"
}

// Met returns the cap because of which memory was refused to the account, or the account was evicted. It returns NoCap if the
// reason was the budget.
func (a *Account) Met() Cap {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.met
}

func (a *Account) meets(c Cap) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.met = c
}

// overEver returns the cap because of which n more bytes can never fit, or NoCap.
func (b *Budget) overEver(a *Account, u Use, n int64) Cap {
	after, bound := a.Held()+n, b.Bound()
	if bound > 0 && after > bound {
		return BudgetCap
	}
	if met := b.overConnection(a, u, n); met != NoCap {
		return met
	}
	if b.maxAddress > 0 && after > b.maxAddress && u != Output {
		return AddressCap
	}
	return NoCap
}

// overConnection returns the cap of the account or of its set that n more bytes for a use would exceed, or NoCap. Answers are not
// capped, since the server makes them.
func (b *Budget) overConnection(a *Account, u Use, n int64) Cap {
	switch {
	case b.maxConnection <= 0 || u == Output:
	case a.Held()+n > b.maxConnection:
		return ConnectionCap
	case a.set != nil && a.set.held.Load()+n > b.maxConnection:
		return PartsCap
	}
	return NoCap
}

// overAddress returns the number of bytes by which a's address would exceed its limit with n more bytes, after the evictions that
// are under way.
func (b *Budget) overAddress(a *Account, n int64) int64 {
	if a.address == nil {
		return 0
	}
	return a.address.held.Load() - a.address.ending.Load() + n - b.maxAddress
}
