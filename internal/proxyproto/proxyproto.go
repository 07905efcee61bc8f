// Package proxyproto parses the header of the PROXY protocol. A proxy sends it at the beginning of a connection to report the
// address of the client: https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, versions 1 (a text line) and 2 (binary).
// The package does no I/O.
package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"net/netip"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/view"
)

const (
	// MaxHeader is the maximum size of a header, in bytes. A header of version 2 with TLS and cloud extensions has
	// some hundred bytes.
	MaxHeader = 4096

	maxLine = 107 // of version 1, with its line end; section 2.1
	fixed   = 16  // bytes of version 2 before the variable part
)

const (
	signature1 = "PROXY "
	signature2 = "\r\n\r\n\x00\r\nQUIT\n"
)

// Reasons to refuse a header.
var (
	ErrSignature = errors.New("the connection does not begin with a PROXY protocol header")
	ErrLine      = errors.New("malformed PROXY protocol header of version 1")
	ErrVersion   = errors.New("PROXY protocol header with an unknown version or command")
	ErrFamily    = errors.New("PROXY protocol header for something other than a stream over IP or a unix socket")
	ErrLength    = errors.New("PROXY protocol header with a length that does not match its contents or exceeds 4096 bytes")
	ErrChecksum  = errors.New("PROXY protocol header with a wrong checksum")
)

// Parse parses the header at the start of b and returns its size in bytes, or 0 if the header is incomplete. client is the zero
// AddrPort if the header names no client, as for the proxy's own connections.
func Parse(b []byte) (n int, client netip.AddrPort, err error) {
	switch {
	case hasPrefix(b, signature2):
		return parse2(b)
	case hasPrefix(b, signature1):
		return parse1(b)
	case len(b) < len(signature2) && hasPrefix([]byte(signature2), string(b)), len(b) < len(signature1) && hasPrefix([]byte(signature1), string(b)):
		return 0, client, nil
	}
	return 0, client, ErrSignature
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

var space = []byte(" ")

// parse1 parses a line such as "PROXY TCP4 192.0.2.1 198.51.100.7 5000 80".
func parse1(b []byte) (n int, client netip.AddrPort, err error) {
	end := bytes.IndexByte(b[:min(len(b), maxLine)], '\n')
	if end < 0 {
		if len(b) >= maxLine {
			return 0, client, ErrLine
		}
		return 0, client, nil
	}
	if b[end-1] != '\r' {
		return 0, client, ErrLine
	}
	line := b[len(signature1) : end-1]
	family, rest, more := bytes.Cut(line, space)
	if string(family) == "UNKNOWN" {
		return end + 1, client, nil // the rest is ignored
	}
	var fields [4][]byte
	for i := range fields {
		if !more {
			return 0, client, ErrLine
		}
		fields[i], rest, more = bytes.Cut(rest, space)
	}
	if more {
		return 0, client, ErrLine
	}
	from, ok1 := address(fields[0], family)
	_, ok2 := address(fields[1], family)
	port, ok3 := portOf(fields[2])
	_, ok4 := portOf(fields[3])
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return 0, client, ErrLine
	}
	return end + 1, netip.AddrPortFrom(from, port), nil
}

// address parses an address of the family TCP4 or TCP6.
func address(text, family []byte) (netip.Addr, bool) {
	const longest = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")
	if len(text) > longest {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(view.String(text)) // the error, which would keep the string, is dropped
	if err != nil || a.Zone() != "" || a.Is4() != (string(family) == "TCP4") || string(family) != "TCP4" && string(family) != "TCP6" {
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

// portOf parses a decimal number without leading zeros.
func portOf(text []byte) (uint16, bool) {
	if len(text) == 0 || len(text) > 5 || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return uint16(n), n <= 65535
}

// The 13th and 14th bytes of version 2, section 2.2.
const (
	commandLocal = 0x20 // the proxy's own connection, such as a health check
	commandProxy = 0x21

	familyNone = 0x00
	familyTCP4 = 0x11
	familyTCP6 = 0x21
	familyUnix = 0x31
)

func parse2(b []byte) (n int, client netip.AddrPort, err error) {
	if len(b) < fixed {
		return 0, client, nil
	}
	command, family := b[12], b[13]
	n = fixed + int(binary.BigEndian.Uint16(b[14:]))
	switch {
	case command != commandLocal && command != commandProxy:
		return 0, client, ErrVersion
	case n > MaxHeader:
		return 0, client, ErrLength
	case len(b) < n:
		return 0, client, nil
	case command == commandLocal:
		return n, client, nil // ignore the rest
	}
	addresses := 0
	body := b[fixed:n]
	switch family {
	case familyNone:
		return n, client, nil
	case familyTCP4:
		addresses = 2*4 + 2*2
	case familyTCP6:
		addresses = 2*16 + 2*2
	case familyUnix:
		addresses = 2 * 108
	default:
		return 0, client, ErrFamily
	}
	if len(body) < addresses {
		return 0, client, ErrLength
	}
	if err := checkExtensions(b[:n], fixed+addresses); err != nil {
		return 0, client, err
	}
	switch family {
	case familyTCP4:
		client = netip.AddrPortFrom(netip.AddrFrom4([4]byte(body)), binary.BigEndian.Uint16(body[8:]))
	case familyTCP6:
		client = netip.AddrPortFrom(netip.AddrFrom16([16]byte(body)).Unmap(), binary.BigEndian.Uint16(body[32:]))
	}
	return n, client, nil
}

// typeChecksum is the type of the extension with the CRC-32C of the header, computed with zeros in its place (section
// 2.2.4).
const typeChecksum = 0x03

// castagnoli is created for the first checksum, since most programs need none.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

var zeros = make([]byte, 4)

// checkExtensions checks the extensions of a header from offset at: type, length in two bytes, value.
func checkExtensions(header []byte, at int) error {
	for at < len(header) {
		if len(header)-at < 3 {
			return ErrLength
		}
		kind, length := header[at], int(binary.BigEndian.Uint16(header[at+1:]))
		at += 3
		if length > len(header)-at {
			return ErrLength
		}
		if kind == typeChecksum {
			if length != 4 {
				return ErrChecksum
			}
			sum := crc32.Update(0, castagnoli(), header[:at])
			sum = crc32.Update(sum, castagnoli(), zeros)
			sum = crc32.Update(sum, castagnoli(), header[at+4:])
			if sum != binary.BigEndian.Uint32(header[at:]) {
				return ErrChecksum
			}
		}
		at += length
	}
	return nil
}

// From returns socket wrapped so that its RemoteAddr is client.
func From(socket net.Conn, client net.Addr) net.Conn {
	switch c := socket.(type) {
	case *net.TCPConn:
		return &tcpFrom{c, client}
	case *net.UnixConn:
		return &unixFrom{c, client}
	}
	return &connFrom{socket, client}
}

// These types keep the optional methods of their kind of socket, such as closing one direction.
type (
	tcpFrom struct {
		*net.TCPConn
		client net.Addr
	}
	unixFrom struct {
		*net.UnixConn
		client net.Addr
	}
	connFrom struct {
		net.Conn
		client net.Addr
	}
)

func (c *tcpFrom) RemoteAddr() net.Addr  { return c.client }
func (c *unixFrom) RemoteAddr() net.Addr { return c.client }
func (c *connFrom) RemoteAddr() net.Addr { return c.client }
