package proxyproto_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/proxyproto"
)

const signature = "\r\n\r\n\x00\r\nQUIT\n"

// version2 makes a header of version 2.
func version2(command, family byte, body string) string {
	return signature + string([]byte{command, family}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(body)))) + body
}

// An extension is one extension of a header of version 2.
func extension(kind byte, value string) string {
	return string([]byte{kind}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(value)))) + value
}

const (
	tcp4 = "\xcb\x00\x71\x07" + "\x0a\x00\x00\x01" + "\x13\x88\x00\x50"
	tcp6 = "\x2a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x2a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02" + "\x13\x88\x00\x50"
)

// summed is a header of version 2 with a checksum.
func summed(wrong uint32) string {
	h := []byte(version2(0x21, 0x11, tcp4+extension(4, "xx")+extension(3, "\x00\x00\x00\x00")+extension(1, "h2")))
	at := len(h) - len(extension(1, "h2")) - 4
	binary.BigEndian.PutUint32(h[at:], crc32.Checksum(h, crc32.MakeTable(crc32.Castagnoli))+wrong)
	return string(h)
}

func TestParse(t *testing.T) {
	const more = "\x00more"
	long := strings.Repeat("x", 4096)
	for name, test := range map[string]struct {
		header, client string
		err            error
	}{
		"v1 IPv4":                      {"PROXY TCP4 203.0.113.7 10.0.0.1 5000 80\r\n", "203.0.113.7:5000", nil},
		"v1 IPv6":                      {"PROXY TCP6 2a00::1 2a00::2 5000 80\r\n", "[2a00::1]:5000", nil},
		"v1 mapped":                    {"PROXY TCP6 ::ffff:203.0.113.7 ::ffff:10.0.0.1 5000 80\r\n", "203.0.113.7:5000", nil},
		"v1 unknown":                   {"PROXY UNKNOWN\r\n", "", nil},
		"v1 unknown with more":         {"PROXY UNKNOWN ffff:: a b c d e\r\n", "", nil},
		"v1 longest":                   {"PROXY UNKNOWN " + strings.Repeat("x", 91) + "\r\n", "", nil},
		"v1 too long":                  {"PROXY UNKNOWN " + strings.Repeat("x", 92) + "\r\n", "", proxyproto.ErrLine},
		"v1 without an end":            {"PROXY TCP4 " + strings.Repeat("1", 200), "", proxyproto.ErrLine},
		"v1 bare line feed":            {"PROXY TCP4 203.0.113.7 10.0.0.1 5000 80\n", "", proxyproto.ErrLine},
		"v1 two spaces":                {"PROXY TCP4  203.0.113.7 10.0.0.1 5000 80\r\n", "", proxyproto.ErrLine},
		"v1 a field more":              {"PROXY TCP4 203.0.113.7 10.0.0.1 5000 80 1\r\n", "", proxyproto.ErrLine},
		"v1 a field less":              {"PROXY TCP4 203.0.113.7 10.0.0.1 5000\r\n", "", proxyproto.ErrLine},
		"v1 a trailing space":          {"PROXY TCP4 203.0.113.7 10.0.0.1 5000 80 \r\n", "", proxyproto.ErrLine},
		"v1 leading zero":              {"PROXY TCP4 203.0.113.07 10.0.0.1 5000 80\r\n", "", proxyproto.ErrLine},
		"v1 port with zero":            {"PROXY TCP4 203.0.113.7 10.0.0.1 05000 80\r\n", "", proxyproto.ErrLine},
		"v1 port too large":            {"PROXY TCP4 203.0.113.7 10.0.0.1 65536 80\r\n", "", proxyproto.ErrLine},
		"v1 port with a sign":          {"PROXY TCP4 203.0.113.7 10.0.0.1 +500 80\r\n", "", proxyproto.ErrLine},
		"v1 zone":                      {"PROXY TCP6 fe80::1%eth0 2a00::2 5000 80\r\n", "", proxyproto.ErrLine},
		"v1 IPv6 as IPv4":              {"PROXY TCP4 2a00::1 10.0.0.1 5000 80\r\n", "", proxyproto.ErrLine},
		"v1 IPv4 as IPv6":              {"PROXY TCP6 203.0.113.7 2a00::2 5000 80\r\n", "", proxyproto.ErrLine},
		"v1 UDP":                       {"PROXY UDP4 203.0.113.7 10.0.0.1 5000 80\r\n", "", proxyproto.ErrLine},
		"v1 in small letters":          {"proxy TCP4 203.0.113.7 10.0.0.1 5000 80\r\n", "", proxyproto.ErrSignature},
		"v2 IPv4":                      {version2(0x21, 0x11, tcp4), "203.0.113.7:5000", nil},
		"v2 IPv6":                      {version2(0x21, 0x21, tcp6), "[2a00::1]:5000", nil},
		"v2 unix":                      {version2(0x21, 0x31, strings.Repeat("x", 216)), "", nil},
		"v2 local":                     {version2(0x20, 0x00, ""), "", nil},
		"v2 local with whatever":       {version2(0x20, 0x99, "xyz"), "", nil},
		"v2 unspecified":               {version2(0x21, 0x00, "xyz"), "", nil},
		"v2 extensions":                {version2(0x21, 0x11, tcp4+extension(1, "h2")+extension(2, "h.example")+extension(0xee, "")), "203.0.113.7:5000", nil},
		"v2 checksum":                  {summed(0), "203.0.113.7:5000", nil},
		"v2 wrong checksum":            {summed(1), "", proxyproto.ErrChecksum},
		"v2 short checksum":            {version2(0x21, 0x11, tcp4+extension(3, "abc")), "", proxyproto.ErrChecksum},
		"v2 half an extension":         {version2(0x21, 0x11, tcp4+"\x01\x00"), "", proxyproto.ErrLength},
		"v2 an extension beyond":       {version2(0x21, 0x11, tcp4+"\x01\x00\x05abcd"), "", proxyproto.ErrLength},
		"v2 short IPv4":                {version2(0x21, 0x11, tcp4[:11]), "", proxyproto.ErrLength},
		"v2 short IPv6":                {version2(0x21, 0x21, tcp4), "", proxyproto.ErrLength},
		"v2 short unix":                {version2(0x21, 0x31, tcp6), "", proxyproto.ErrLength},
		"v2 datagrams":                 {version2(0x21, 0x12, tcp4), "", proxyproto.ErrFamily},
		"v2 unknown family":            {version2(0x21, 0x41, tcp4), "", proxyproto.ErrFamily},
		"v2 version 1":                 {version2(0x11, 0x11, tcp4), "", proxyproto.ErrVersion},
		"v2 unknown command":           {version2(0x22, 0x11, tcp4), "", proxyproto.ErrVersion},
		"v2 too long":                  {version2(0x21, 0x11, tcp4+extension(4, long)), "", proxyproto.ErrLength},
		"a request":                    {"GET / HTTP/1.1\r\n\r\n", "", proxyproto.ErrSignature},
		"TLS":                          {"\x16\x03\x01\x02\x00", "", proxyproto.ErrSignature},
		"PRI of HTTP/2":                {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", proxyproto.ErrSignature},
		"line breaks before a request": {"\r\n\r\nGET / HTTP/1.1\r\n", "", proxyproto.ErrSignature},
	} {
		n, client, err := proxyproto.Parse([]byte(test.header + more))
		if !errors.Is(err, test.err) || test.err == nil && n != len(test.header) || test.err != nil && n != 0 {
			t.Errorf("%s: got %d bytes, %v; want %d and %v", name, n, err, len(test.header), test.err)
		}
		got := ""
		if client.IsValid() {
			got = client.String()
		}
		if got != test.client {
			t.Errorf("%s: got client %q, want %q", name, got, test.client)
		}
		if test.err == nil {
			for i := range len(test.header) {
				if n, client, err := proxyproto.Parse([]byte(test.header[:i])); n != 0 || err != nil || client.IsValid() {
					t.Errorf("%s: the first %d bytes: got %d, %v, %v; want more to come", name, i, n, client, err)
				}
			}
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	v1, v2 := []byte("PROXY TCP6 2a00::1 2a00::2 5000 80\r\n"), []byte(summed(0))
	if n := testing.AllocsPerRun(100, func() {
		_, _, _ = proxyproto.Parse(v1)
		_, _, _ = proxyproto.Parse(v2)
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

var line = regexp.MustCompile(`^PROXY (?:(UNKNOWN)(?: [^\n]*)?|TCP([46]) ([^ \n]+) ([^ \n]+) (0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4}))\r\n`)

// parseLine is the reference implementation for version 1.
func parseLine(s string) (n int, client string, ok bool) {
	m := line.FindStringSubmatch(s)
	if m == nil || len(m[0]) > 107 {
		return 0, "", false
	}
	if m[1] != "" {
		return len(m[0]), "", true
	}
	from, err1 := netip.ParseAddr(m[3])
	to, err2 := netip.ParseAddr(m[4])
	if err1 != nil || err2 != nil || from.Is4() != (m[2] == "4") || to.Is4() != from.Is4() || from.Zone()+to.Zone() != "" {
		return 0, "", false
	}
	port1, _ := strconv.Atoi(m[5])
	port2, _ := strconv.Atoi(m[6])
	if max(port1, port2) > 65535 {
		return 0, "", false
	}
	return len(m[0]), netip.AddrPortFrom(from.Unmap(), uint16(port1)).String(), true
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"PROXY TCP4 203.0.113.7 10.0.0.1 5000 80\r\n", "PROXY TCP6 ::1 ::2 0 65535\r\nGET", "PROXY UNKNOWN\r\n", "PROXY UNKNOWNX\r\n", "PROXY \n",
		version2(0x21, 0x11, tcp4), version2(0x21, 0x21, tcp6+extension(1, "h2")), version2(0x20, 0, ""), summed(0), summed(7), "GET / HTTP/1.1\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, client, err := proxyproto.Parse([]byte(s))
		if n < 0 || n > len(s) || n > proxyproto.MaxHeader || err != nil && (n != 0 || client.IsValid()) {
			t.Fatalf("%q: got %d, %v, %v", s, n, client, err)
		}
		if strings.HasPrefix(s, "PROXY ") {
			want, wantClient, ok := parseLine(s)
			if ok != (n > 0) || n != want || ok && wantClient != "" && client.String() != wantClient || wantClient == "" && client.IsValid() {
				t.Fatalf("%q: got %d, %v, %v; want %d, %v", s, n, client, err, want, wantClient)
			}
		}
		// A prefix gives the same result, requires more bytes, or is an error. A complete header remains complete.
		for i := range min(len(s), 300) {
			m, early, earlyErr := proxyproto.Parse([]byte(s[:i]))
			switch {
			case earlyErr != nil && err == nil:
				t.Fatalf("%q: refused after %d bytes, but valid as a whole: %v", s, i, earlyErr)
			case m > 0 && (m != n || early != client):
				t.Fatalf("%q: got %d bytes are a header of %d, all of it one of %d", s, i, m, n)
			}
		}
	})
}
