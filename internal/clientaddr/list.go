package clientaddr

import (
	"net/netip"
	"strings"
)

// lastOfList splits the last element off a list that commas separate.
func lastOfList(list string) (rest, element string) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], strings.Trim(list[i+1:], " \t")
}

// parseAddrPort reads an address, with a port or without. Zones are of no meaning to
// others, and refused. It returns the zero AddrPort for what is none.
func parseAddrPort(s string) netip.AddrPort {
	if s == "" || !startsAddr[s[0]] {
		return netip.AddrPort{} // before an error is made of it
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
