//go:build linux

package engine

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// peerAddr is a netip.Addr in 20 bytes and without a pointer; every connection has one. An IPv4 address is stored in its IPv6
// form; the zero value means no address.
type peerAddr struct {
	ip   [16]byte
	zone uint32
}

// newPeerAddr returns the address and the port in sa.
func newPeerAddr(sa *unix.RawSockaddrAny) (p peerAddr, port uint16) {
	switch sa.Addr.Family {
	case unix.AF_INET:
		v4 := inet4(sa)
		p.ip = netip.AddrFrom4(v4.Addr).As16()
		return p, hostOrder(v4.Port)
	case unix.AF_INET6:
		v6 := inet6(sa)
		p.ip, p.zone = v6.Addr, v6.Scope_id
		return p, hostOrder(v6.Port)
	}
	return p, 0
}

// addr returns the address, the zero Addr if there is none.
func (p *peerAddr) addr() netip.Addr {
	if _, ok := p.addr4(); ok { // the most common case
		return netip.AddrFrom4([4]byte(p.ip[12:]))
	}
	if *p == (peerAddr{}) {
		return netip.Addr{}
	}
	return addr6(p.ip, p.zone)
}

// addr4 returns the address if it is an IPv4 address, stored in ::ffff:0:0/96.
func (p *peerAddr) addr4() (ip uint32, ok bool) {
	return binary.BigEndian.Uint32(p.ip[12:]), binary.BigEndian.Uint64(p.ip[:]) == 0 && binary.BigEndian.Uint32(p.ip[8:]) == 0xffff
}

// addr6 returns the address, as an IPv4 address for an IPv4 peer of a dual-stack socket.
func addr6(ip [16]byte, zone uint32) netip.Addr {
	a := netip.AddrFrom16(ip).Unmap()
	if zone != 0 && a.Is6() {
		a = a.WithZone(strconv.FormatUint(uint64(zone), 10))
	}
	return a
}

// hostOrder converts a port that was read as a native integer from a field in network byte order.
func hostOrder(port uint16) uint16 {
	b := [2]byte{}
	binary.NativeEndian.PutUint16(b[:], port)
	return uint16(b[0])<<8 | uint16(b[1])
}
