package clientaddr

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// A Trust is the set of proxies that are trusted to report the client's address. A nil Trust is
// empty. A Trust is immutable.
type Trust struct {
	prefixes []netip.Prefix
	v4       []prefix4 // the IPv4 prefixes, again
	unix     bool
}

// prefix4 is an IPv4 prefix as numbers.
type prefix4 struct{ bits, mask uint32 }

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	private  = []netip.Prefix{ // RFC 1918 and RFC 4193
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}
)

// ParseTrust parses a set: addresses, prefixes, and the words loopback, private and unix. It
// returns nil for an empty list.
func ParseTrust(proxies []string) (*Trust, error) {
	if len(proxies) == 0 {
		return nil, nil
	}
	t := new(Trust)
	for _, proxy := range proxies {
		switch proxy {
		case "loopback":
			t.prefixes = append(t.prefixes, loopback...)
			continue
		case "private":
			t.prefixes = append(t.prefixes, private...)
			continue
		case "unix":
			t.unix = true
			continue
		}
		prefix, err := parsePrefix(proxy)
		if err != nil {
			return nil, err
		}
		t.prefixes = append(t.prefixes, prefix)
	}
	slices.SortFunc(t.prefixes, netip.Prefix.Compare)
	t.prefixes = slices.Compact(t.prefixes)
	for _, p := range t.prefixes {
		if p.Addr().Is4() {
			b := p.Addr().As4()
			t.v4 = append(t.v4, prefix4{binary.BigEndian.Uint32(b[:]), ^(1<<(32-p.Bits()) - 1)})
		}
	}
	return t, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, notAddr := netip.ParseAddr(s)
		if notAddr != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is not an address, a prefix such as 10.0.0.0/8, loopback, private or unix", s)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if masked := prefix.Masked(); masked != prefix {
		return netip.Prefix{}, fmt.Errorf("%q has bits set beyond its length: write %s or %s", s, masked, prefix.Addr())
	}
	if prefix.Addr().Is4In6() { // addresses are compared as IPv4
		if prefix.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q is a prefix of IPv4 addresses as IPv6 has them: it must have 96 bits or more", s)
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix, nil
}

// Trusts reports whether addr is in the set. The zero Addr stands for the peer on a unix socket.
func (t *Trust) Trusts(addr netip.Addr) bool {
	if t == nil {
		return false
	}
	if addr.Is4() || addr.Is4In6() {
		b := addr.As4()
		return trusts4(t.v4, binary.BigEndian.Uint32(b[:]))
	}
	if !addr.IsValid() {
		return t.unix
	}
	addr = addr.WithZone("")
	for _, p := range t.prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// trusts4 reports whether an IPv4 address is in one of the prefixes.
func trusts4(prefixes []prefix4, n uint32) bool {
	for _, p := range prefixes {
		if n&p.mask == p.bits {
			return true
		}
	}
	return false
}
