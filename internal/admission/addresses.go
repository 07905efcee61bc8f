package admission

import (
	"net/netip"
	"sync"
)

// Addresses counts the open connections of each remote address, up to a limit. All methods are safe for concurrent use; a nil
// Addresses has no limit. Its size is bounded by the number of connections.
type Addresses struct {
	limit int
	mu    sync.Mutex
	open  keyCount[addressKey]
}

// addressKey is the network that counts as one address, see Network. IPv4 addresses are stored as IPv6.
type addressKey [16]byte

// AddressKey identifies addresses that count as one.
type AddressKey = addressKey

// AddressKeyOf returns the key of a valid address.
func AddressKeyOf(ip netip.Addr) AddressKey { return keyOf(ip) }

func keyOf(ip netip.Addr) addressKey { return Network(ip, 64).As16() }

// nat64 is the prefix of translated IPv4 addresses (RFC 6052 section 2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Network returns the address under which the clients of a network are counted together. For an IPv4 address, also in an
// IPv6 form (::ffff:192.0.2.1, 64:ff9b::192.0.2.1), this is the IPv4 address. For other IPv6 addresses it is the prefix of
// the given number of bits, since a single host gets many addresses. Link-local addresses, which all have the same prefix,
// are returned unchanged. The result has no zone.
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
	if err != nil { // invalid address or length
		return ip
	}
	return network.Addr()
}

// NewAddresses returns a counter with the given limit for each address. For a limit of 0 it returns nil.
func NewAddresses(limit int) *Addresses {
	if limit == 0 {
		return nil
	}
	return &Addresses{limit: limit}
}

// Take counts another connection of ip. If ip has reached the limit, it counts nothing and returns false. The zero Addr,
// for peers without an address, has no limit.
func (a *Addresses) Take(ip netip.Addr) bool {
	if a == nil || !ip.IsValid() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open.add(keyOf(ip), a.limit)
}

// Release undoes a successful Take.
func (a *Addresses) Release(ip netip.Addr) {
	if a == nil || !ip.IsValid() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open.release(keyOf(ip))
}

// Len returns the number of addresses with open connections.
func (a *Addresses) Len() int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open.counts)
}
