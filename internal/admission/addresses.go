package admission

import (
	"net/netip"
	"sync"
)

// Addresses counts what each remote address has open, up to a bound. All methods
// are safe for concurrent use; a nil Addresses bounds nothing. It holds an entry
// for an address only while the count is not zero, so it is never larger than
// what it counts.
type Addresses struct {
	most int32
	mu   sync.Mutex
	open map[addressKey]int32
	peak int // entries there have been since open was made
}

// addressKey is what counts as one address: an IPv4 address, written as IPv6 has
// it; the first 64 bits of an IPv6 address, since a single host is given that
// many; a link-local address in full, for there the first 64 bits are everybody's.
type addressKey [16]byte

func keyOf(ip netip.Addr) addressKey {
	key := addressKey(ip.As16())
	if !ip.Is4() && !ip.Is4In6() && !ip.IsLinkLocalUnicast() {
		clear(key[8:])
	}
	return key
}

// NewAddresses returns a count that allows each address most. With most 0 it
// returns nil.
func NewAddresses(most int) *Addresses {
	if most == 0 {
		return nil
	}
	return &Addresses{most: int32(min(most, 1<<31-1)), open: make(map[addressKey]int32)}
}

// Take counts one more for ip, and reports false if it has as many as it may. The
// zero Addr, which stands for a peer without an address, has no bound.
func (a *Addresses) Take(ip netip.Addr) bool {
	if a == nil || !ip.IsValid() {
		return true
	}
	key := keyOf(ip)
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.open[key]
	if n >= a.most {
		return false
	}
	a.open[key] = n + 1
	a.peak = max(a.peak, len(a.open))
	return true
}

// keptAddresses is how many entries there may have been in a map that is kept,
// however few there are now: maps do not shrink.
const keptAddresses = 1 << 10

// Release takes back a Take that returned true.
func (a *Addresses) Release(ip netip.Addr) {
	if a == nil || !ip.IsValid() {
		return
	}
	key := keyOf(ip)
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.open[key]; n > 1 {
		a.open[key] = n - 1
		return
	}
	delete(a.open, key)
	if a.peak > keptAddresses && len(a.open) < a.peak/8 {
		smaller := make(map[addressKey]int32, len(a.open))
		for k, n := range a.open {
			smaller[k] = n
		}
		a.open, a.peak = smaller, len(smaller)
	}
}

// Len returns how many addresses have something open.
func (a *Addresses) Len() int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)
}
