//go:build linux

package engine

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// peerAddr is a netip.AddrPort in 24 bytes and without a pointer; every
// connection carries one.
type peerAddr struct {
	ip   [16]byte
	zone uint32
	port uint16
	kind uint8 // 4, 6, or 0 for none
}

func newPeerAddr(sa *unix.RawSockaddrAny) (p peerAddr) {
	switch sa.Addr.Family {
	case unix.AF_INET:
		v4 := inet4(sa)
		copy(p.ip[:], v4.Addr[:])
		p.port, p.kind = hostOrder(v4.Port), 4
	case unix.AF_INET6:
		v6 := inet6(sa)
		p.ip, p.zone = v6.Addr, v6.Scope_id
		p.port, p.kind = hostOrder(v6.Port), 6
	}
	return p
}

func (p *peerAddr) addrPort() netip.AddrPort {
	switch p.kind {
	case 4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(p.ip[:4])), p.port)
	case 6:
		return netip.AddrPortFrom(addr6(p.ip, p.zone), p.port)
	}
	return netip.AddrPort{}
}

// addr6 returns the address, as IPv4 if it is an IPv4 peer of a dual-stack
// socket.
func addr6(ip [16]byte, zone uint32) netip.Addr {
	a := netip.AddrFrom16(ip).Unmap()
	if zone != 0 && a.Is6() {
		a = a.WithZone(strconv.FormatUint(uint64(zone), 10))
	}
	return a
}

// hostOrder turns a port that was read as a native integer, but lies in memory
// big end first, into its value.
func hostOrder(port uint16) uint16 {
	b := [2]byte{}
	binary.NativeEndian.PutUint16(b[:], port)
	return uint16(b[0])<<8 | uint16(b[1])
}
