package clientaddr

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// lastOfList splits the last element off a comma-separated list.
func lastOfList(list string) (rest, element string) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], trimBlanks(list[i+1:])
}

// trimBlanks removes spaces and tabs around s.
func trimBlanks(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// parse4 parses an IPv4 address, the most frequent kind.
func parse4(s string) (ip uint32, ok bool) {
	rest, ip, ok := last4(s)
	return ip, ok && rest == "" && s[0] > ' ' && s[0] != ',' && s[len(s)-1] > ' '
}

// last4 is like lastOfList for an element that is an IPv4 address, which it parses: four numbers
// below 256 without leading zeros.
func last4(list string) (rest string, ip uint32, ok bool) {
	i := len(list)
	for i > 0 && (list[i-1] == ' ' || list[i-1] == '\t') {
		i--
	}
	for shift := 0; ; shift += 8 {
		value, first, more := uint32(0), uint32(0), false // first is the first of two or three digits
		switch {
		case i == 0 || list[i-1]-'0' > 9:
			return list, 0, false
		case i == 1 || list[i-2]-'0' > 9:
			value = uint32(list[i-1] - '0')
			i--
		case i == 2 || list[i-3]-'0' > 9:
			first, more = uint32(list[i-2]-'0'), true
			value = first*10 + uint32(list[i-1]-'0')
			i -= 2
		default:
			first, more = uint32(list[i-3]-'0'), true
			value = first*100 + uint32(list[i-2]-'0')*10 + uint32(list[i-1]-'0')
			i -= 3
		}
		if value > 255 || more && first == 0 {
			return list, 0, false
		}
		ip |= value << shift
		if shift == 24 {
			break
		}
		if i == 0 || list[i-1] != '.' {
			return list, 0, false
		}
		i--
	}
	for i > 0 && (list[i-1] == ' ' || list[i-1] == '\t') {
		i--
	}
	if i == 0 {
		return "", ip, true
	}
	return list[:i-1], ip, list[i-1] == ','
}

// from4 returns an IPv4 address.
func from4(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// parseAddrPort parses an address, with or without a port. It refuses zones, which have no meaning
// on other machines. It returns the zero AddrPort for an invalid address.
func parseAddrPort(s string) netip.AddrPort {
	if s == "" || !startsAddr[s[0]] {
		return netip.AddrPort{} // avoids the cost of an error
	}
	if n, ok := parse4(s); ok {
		return netip.AddrPortFrom(from4(n), 0)
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

// startsAddr is the set of bytes that may begin an address.
var startsAddr = func() (starts [256]bool) {
	for _, c := range "0123456789abcdefABCDEF:[" {
		starts[c] = true
	}
	return starts
}()
