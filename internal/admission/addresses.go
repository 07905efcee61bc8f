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

// addressKey is the network that counts as one address, see Network; an IPv4 address is written as IPv6 has it.
type addressKey [16]byte

// AddressKey tells addresses apart that count as different ones.
type AddressKey = addressKey

// AddressKeyOf returns the key of a valid address.
func AddressKeyOf(ip netip.Addr) AddressKey { return keyOf(ip) }

func keyOf(ip netip.Addr) addressKey { return Network(ip, 64).As16() }

// nat64 is the prefix below which a translator writes IPv4 addresses (RFC 6052 section 2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Network returns the address that stands for the clients which count as one: an IPv4 address, also one that is written in IPv6
// (::ffff:192.0.2.1, 64:ff9b::192.0.2.1), for itself; of an IPv6 address the first bits, since a single host is given many; a
// link-local address for itself, since the first bits are the same for all. It has no zone.
func Network(ip netip.Addr, bits int) netip.Addr {
	ip = ip.Unmap().WithZone("")
	switch {
	case ip.Is4(), ip.IsLinkLocalUnicast():
		return ip
	case nat64.Contains(ip):
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	network, err := ip.Prefix(bits)
	if err != nil { // no address, or no length that it has
		return ip
	}
	return network.Addr()
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
