package admission

import (
	"net/netip"
	"sync"
)

// Addresses counts what each remote address has open, up to a bound. All methods
// are safe for concurrent use; a nil Addresses bounds nothing. It is never larger
// than what it counts.
type Addresses struct {
	most int
	mu   sync.Mutex
	open keyCount[addressKey]
}

// addressKey is what counts as one address: an IPv4 address, written as IPv6 has
// it; the first 64 bits of an IPv6 address, since a single host is given that
// many; a link-local address in full, for there the first 64 bits are everybody's.
type addressKey [16]byte

// AddressKey tells addresses apart that count as different ones.
type AddressKey = addressKey

// AddressKeyOf returns the key of a valid address.
func AddressKeyOf(ip netip.Addr) AddressKey { return keyOf(ip) }

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
	return &Addresses{most: most}
}

// Take counts one more for ip, and reports false if it has as many as it may. The
// zero Addr, which stands for a peer without an address, has no bound.
func (a *Addresses) Take(ip netip.Addr) bool {
	if a == nil || !ip.IsValid() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open.take(keyOf(ip), a.most)
}

// Release takes back a Take that returned true.
func (a *Addresses) Release(ip netip.Addr) {
	if a == nil || !ip.IsValid() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open.release(keyOf(ip))
}

// Len returns how many addresses have something open.
func (a *Addresses) Len() int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open.counts)
}
