package clientaddr

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// A Source is where the addresses of clients are found. It does not change.
type Source struct {
	*Trust
	four   prefix4   // the first of Trust, so that most lie here; one that has no address where there is none
	more   []prefix4 // the others
	Header string    // that the proxies write
	plain  bool      // elements are addresses and nothing else
	scheme string    // the header in which they write the scheme; "": in the same

	last func(list string) (rest, element string)
	addr func(element string) netip.AddrPort
}

// NewSource returns the source for a header: Forwarded, or one with addresses separated by
// commas. A nil trust makes it nil, which finds nothing.
func NewSource(trust *Trust, header string) *Source {
	if trust == nil {
		return nil
	}
	s := &Source{Trust: trust, four: prefix4{bits: 1}, Header: header, scheme: "X-Forwarded-Proto", plain: true, last: lastOfList, addr: parseAddrPort}
	if len(trust.v4) > 0 {
		s.four, s.more = trust.v4[0], trust.v4[1:]
	}
	if strings.EqualFold(header, "Forwarded") {
		s.scheme, s.plain, s.last, s.addr = "", false, lastForwarded, forwardedFor
	}
	return s
}

// Trusts4 is Trusts for an address of IPv4.
func (s *Source) Trusts4(ip uint32) bool {
	return ip&s.four.mask == s.four.bits || len(s.more) > 0 && trusts4(s.more, ip)
}

// Client4 is Client, as a number, where it need look at nothing but addresses of IPv4, and finds one that is not trusted. It is below 0
// for other lists.
func (s *Source) Client4(list string) int64 {
	for s.plain {
		rest, ip, ok := last4(list)
		switch {
		case !ok:
			return -1
		case !s.Trusts4(ip):
			return int64(ip)
		}
		list = rest
	}
	return -1
}

// Trusts is that of the Trust.
func (s *Source) Trusts(addr netip.Addr) bool {
	if addr.Is4() { // as most are
		b := addr.As4()
		return s.Trusts4(binary.BigEndian.Uint32(b[:]))
	}
	return s.Trust.Trusts(addr)
}

// Client returns the client's address, where peer, which is trusted, has passed on a request
// with the given list: all values of the header, joined by commas. It is the last one in the
// list that is not trusted; if all are, the first. Where the list does not say who has asked
// a trusted proxy (it is malformed there, hidden or unknown), it is the proxy's. The port is
// 0 unless the list has it.
func (s *Source) Client(peer netip.AddrPort, list string) netip.AddrPort {
	client := peer
	if s.plain { // IPv4, as most are, without package netip
		for list != "" {
			rest, n, ok := last4(list)
			if !ok {
				break
			}
			list, client = rest, netip.AddrPortFrom(from4(n), 0)
			if rest == "" || !s.Trusts4(n) {
				return client
			}
		}
	}
	for list != "" {
		var element string
		list, element = s.last(list)
		from := s.addr(element)
		if !from.IsValid() {
			return client
		}
		client = from
		if !s.Trusts(from.Addr()) {
			return client
		}
	}
	return client
}

// SchemeHeader returns the header in which proxies write the scheme of the request.
func (s *Source) SchemeHeader() string {
	if s.scheme != "" {
		return s.scheme
	}
	return s.Header
}

// Secure reports whether the nearest proxy says that it was asked by TLS. list is all values
// of the SchemeHeader, joined by commas.
func (s *Source) Secure(list string) bool {
	_, element := s.last(list)
	if s.scheme != "" {
		return strings.EqualFold(element, "https")
	}
	value, ok := forwardedParam(element, "proto")
	return ok && strings.EqualFold(value, "https")
}
