package clientaddr

import (
	"net/netip"
	"strings"
)

// lastOfList splits the last element off a list that commas separate.
func lastOfList(list string) (rest, element string) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], trimBlanks(list[i+1:])
}

// trimBlanks removes the blanks around s.
func trimBlanks(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// parse4 reads an IPv4 address, which most are.
func parse4(s string) (addr netip.Addr, ok bool) {
	var ip [4]byte
	i := 0
	for part := range ip {
		// One to three digits, the first of several not 0.
		value, start := uint(0), i
		for ; i < len(s) && s[i]-'0' <= 9; i++ {
			value = 10*value + uint(s[i]-'0')
		}
		if digits := i - start; digits == 0 || digits > 3 || digits > 1 && s[start] == '0' || value > 255 {
			return netip.Addr{}, false
		}
		ip[part] = byte(value)
		if part < 3 {
			if i == len(s) || s[i] != '.' {
				return netip.Addr{}, false
			}
			i++
		}
	}
	return netip.AddrFrom4(ip), i == len(s)
}

// parseAddrPort reads an address, with a port or without. Zones are of no meaning to
// others, and refused. It returns the zero AddrPort for what is none.
func parseAddrPort(s string) netip.AddrPort {
	if s == "" || !startsAddr[s[0]] {
		return netip.AddrPort{} // before an error is made of it
	}
	if addr, ok := parse4(s); ok {
		return netip.AddrPortFrom(addr, 0)
	}
	var ap netip.AddrPort
	if s[0] == '[' || strings.IndexByte(s, '.') > 0 && strings.IndexByte(s, ':') == strings.LastIndexByte(s, ':') && strings.IndexByte(s, ':') > 0 {
		if n := len(s); s[n-1] == ']' {
			addr, err := netip.ParseAddr(s[1 : n-1])
			if err != nil || !addr.Is6() {
				return netip.AddrPort{}
			}
			ap = netip.AddrPortFrom(addr, 0)
		} else {
			var err error
			if ap, err = netip.ParseAddrPort(s); err != nil {
				return netip.AddrPort{}
			}
		}
	} else {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return netip.AddrPort{}
		}
		ap = netip.AddrPortFrom(addr, 0)
	}
	if ap.Addr().Zone() != "" {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// startsAddr has the bytes that an address may begin with.
var startsAddr = func() (starts [256]bool) {
	for _, c := range "0123456789abcdefABCDEF:[" {
		starts[c] = true
	}
	return starts
}()
