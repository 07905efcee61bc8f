package clientaddr

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// A Source finds the addresses of clients in a header. It is immutable.
type Source struct {
	*Trust
	four   prefix4   // the first prefix of Trust, checked first; if Trust has none, a prefix without addresses
	more   []prefix4 // the other prefixes
	Header string    // the header that the proxies write
	plain  bool      // elements are plain addresses
	scheme string    // the header for the scheme; "" if it is in Header

	last func(list string) (rest, element string)
	addr func(element string) netip.AddrPort
}

// NewSource returns the source for a header: Forwarded, or a header with comma-separated addresses.
// It returns nil for a nil trust.
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

// Trusts4 is like Trusts, for an IPv4 address.
func (s *Source) Trusts4(ip uint32) bool {
	return ip&s.four.mask == s.four.bits || len(s.more) > 0 && trusts4(s.more, ip)
}

// Client4 is like Client for a list in which the last address that is not trusted, and all addresses after it, are IPv4
// addresses. It returns the untrusted address as a number. For other lists it returns a negative number.
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

// Trusts reports whether addr is a trusted proxy.
func (s *Source) Trusts(addr netip.Addr) bool {
	if addr.Is4() { // the most frequent case
		b := addr.As4()
		return s.Trusts4(binary.BigEndian.Uint32(b[:]))
	}
	return s.Trust.Trusts(addr)
}

// Client returns the address of the client. peer is the trusted proxy that sent the request, and list contains all values of the
// header, joined by commas. The client is the last address in the list that is not trusted, or the first address if all are
// trusted. If an element is malformed, obfuscated or unknown, Client returns the address of the proxy that has written it. The
// port is 0 unless the list has it.
func (s *Source) Client(peer netip.AddrPort, list string) netip.AddrPort {
	client := peer
	if s.plain { // IPv4, the most frequent case, without package netip
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

// Secure reports whether the nearest proxy declares that it received the request over TLS. list contains all values of the
// SchemeHeader, joined by commas.
func (s *Source) Secure(list string) bool {
	_, element := s.last(list)
	if s.scheme != "" {
		return strings.EqualFold(element, "https")
	}
	value, ok := forwardedParam(element, "proto")
	return ok && strings.EqualFold(value, "https")
}
