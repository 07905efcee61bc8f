package clientaddr

import (
	"net/netip"
	"strings"
)

// ParseAddrPort is like netip.ParseAddrPort, but faster for IPv4.
func ParseAddrPort(s string) (netip.AddrPort, error) {
	if i := strings.LastIndexByte(s, ':'); i > 0 && 1 <= len(s)-i-1 && len(s)-i-1 <= 5 {
		if ip, ok := parse4(s[:i]); ok {
			port := 0
			for _, c := range []byte(s[i+1:]) {
				if c < '0' || c > '9' {
					return netip.ParseAddrPort(s)
				}
				port = 10*port + int(c-'0')
			}
			if port < 1<<16 {
				return netip.AddrPortFrom(from4(ip), uint16(port)), nil
			}
		}
	}
	return netip.ParseAddrPort(s)
}
