package clientaddr_test

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/clientaddr"
)

func source(tb testing.TB, header string) *clientaddr.Source {
	tb.Helper()
	trust, err := clientaddr.ParseTrust([]string{"10.0.0.0/8", "192.0.2.1", "2001:db8::/32"})
	if err != nil {
		tb.Fatal(err)
	}
	return clientaddr.NewSource(trust, header)
}

// addrPort4 returns the address for a result of Client4.
func addrPort4(ip int64) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(ip)))), 0)
}

var peer = netip.MustParseAddrPort("10.0.0.1:4000")

func TestListOfAddresses(t *testing.T) {
	s := source(t, "X-Forwarded-For")
	for list, want := range map[string]string{
		"":                                      "10.0.0.1:4000",
		"203.0.113.7":                           "203.0.113.7:0",
		"203.0.113.7:5555":                      "203.0.113.7:5555",
		"6.6.6.6, 203.0.113.7":                  "203.0.113.7:0", // the client wrote the first address
		"6.6.6.6, 203.0.113.7, 10.1.2.3":        "203.0.113.7:0",
		"6.6.6.6,203.0.113.7,10.1.2.3,10.0.0.9": "203.0.113.7:0",
		"10.1.2.3, 10.0.0.9":                    "10.1.2.3:0", // all are proxies: the first of them
		"2a00::1":                               "[2a00::1]:0",
		"[2a00::1]":                             "[2a00::1]:0",
		"[2a00::1]:443":                         "[2a00::1]:443",
		"::ffff:203.0.113.7":                    "203.0.113.7:0",
		"6.6.6.6, ::ffff:10.0.0.9":              "6.6.6.6:0",
		"6.6.6.6, 2001:db8::1":                  "6.6.6.6:0",
		"unknown":                               "10.0.0.1:4000",
		"6.6.6.6, unknown":                      "10.0.0.1:4000",
		"6.6.6.6, unknown, 10.0.0.9":            "10.0.0.9:0",
		"6.6.6.6, ":                             "10.0.0.1:4000",
		"6.6.6.6,, 10.0.0.9":                    "10.0.0.9:0",
		"6.6.6.6, 203.0.113.7 , 10.0.0.9\t":     "203.0.113.7:0",
		"fe80::1%eth0":                          "10.0.0.1:4000",
		"203.0.113.07":                          "10.0.0.1:4000",
		"203.0.113.7:99999":                     "10.0.0.1:4000",
		"203.0.113":                             "10.0.0.1:4000",
		"[203.0.113.7]":                         "10.0.0.1:4000",
		"[2a00::1":                              "10.0.0.1:4000",
		"203.0.113.7;DROP":                      "10.0.0.1:4000",
		`"203.0.113.7"`:                         "10.0.0.1:4000",
		",":                                     "10.0.0.1:4000",
		strings.Repeat("1.1.1.1,", 8000):        "10.0.0.1:4000",
	} {
		if got := s.Client(peer, list).String(); got != want {
			t.Errorf("%.60q: got client %s, want %s", list, got, want)
		}
		quick := s.Client4(list)
		if quick >= 0 && addrPort4(quick).String() != want {
			t.Errorf("%.60q: got client %#x, want %s", list, quick, want)
		}
		if own := list == "203.0.113.7" || strings.HasPrefix(list, "6.6.6.6, 203.0.113.7"); own && quick < 0 {
			t.Errorf("%.60q: got no client", list)
		}
	}
}

func TestForwarded(t *testing.T) {
	s := source(t, "forwarded")
	for list, want := range map[string]string{
		"":                "10.0.0.1:4000",
		"for=203.0.113.7": "203.0.113.7:0",
		`For="203.0.113.7:4711";proto=http;by=10.0.0.1`: "203.0.113.7:4711",
		`for="[2a00::1]:4711"`:                          "[2a00::1]:4711",
		`for="[2a00::1]"`:                               "[2a00::1]:0",
		`for=[2a00::1]`:                                 "[2a00::1]:0",
		`for="2a00::1"`:                                 "10.0.0.1:4000",
		`for="203.0.113.7:_obf"`:                        "203.0.113.7:0",
		"for=6.6.6.6, for=203.0.113.7":                  "203.0.113.7:0",
		"for=6.6.6.6, for=203.0.113.7, for=10.0.0.7":    "203.0.113.7:0",
		"for=6.6.6.6, for=unknown":                      "10.0.0.1:4000",
		"for=6.6.6.6, for=_hidden":                      "10.0.0.1:4000",
		"for=6.6.6.6, proto=https":                      "10.0.0.1:4000",
		"for=6.6.6.6, for=1.1.1.1;for=2.2.2.2":          "10.0.0.1:4000",
		`for="6.6.6.6, for=203.0.113.7`:                 "203.0.113.7:0", // unclosed quote of the client
		`for="\", for=203.0.113.7`:                      "203.0.113.7:0",
		`for=6.6.6.6;by=", for="203.0.113.7"`:           "203.0.113.7:0",
		`for=6.6.6.6, for=203.0.113.7;by="a,b"`:         "203.0.113.7:0",
		`for=6.6.6.6, for=203.0.113.7;by="a\",b"`:       "10.0.0.1:4000",
		`for="203.0.113.7`:                              "10.0.0.1:4000",
		`for="203.0.113.7"x`:                            "10.0.0.1:4000",
		`for=`:                                          "10.0.0.1:4000",
		`for`:                                           "10.0.0.1:4000",
		`;;for=203.0.113.7;;`:                           "203.0.113.7:0",
		`for=203.0.113.7 ; proto=http`:                  "203.0.113.7:0",
	} {
		if got := s.Client(peer, list).String(); got != want {
			t.Errorf("%q: got client %s, want %s", list, got, want)
		}
	}
}

func TestSecure(t *testing.T) {
	for _, c := range []struct {
		header, list string
		want         bool
	}{
		{"X-Forwarded-For", "https", true},
		{"X-Forwarded-For", "HTTPS", true},
		{"X-Forwarded-For", "http", false},
		{"X-Forwarded-For", "https, http", false},
		{"X-Forwarded-For", "", false},
		{"Forwarded", "for=1.1.1.1;proto=https", true},
		{"Forwarded", "for=1.1.1.1;proto=https, for=2.2.2.2;proto=http", false},
		{"Forwarded", "for=1.1.1.1;proto=https, for=2.2.2.2", false},
		{"Forwarded", "", false},
	} {
		if got := source(t, c.header).Secure(c.list); got != c.want {
			t.Errorf("%s: %q is secure: got %v, want %v", c.header, c.list, got, c.want)
		}
	}
	if h := source(t, "X-Forwarded-For").SchemeHeader(); h != "X-Forwarded-Proto" {
		t.Errorf("got header %s for the scheme", h)
	}
	if h := source(t, "Forwarded").SchemeHeader(); h != "Forwarded" {
		t.Errorf("got header %s for the scheme", h)
	}
}

func TestParseTrust(t *testing.T) {
	trust, err := clientaddr.ParseTrust([]string{"loopback", "private", "unix", "203.0.113.0/24", "::ffff:198.51.100.0/120"})
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "127.255.0.1": true, "::1": true, "10.9.8.7": true, "172.31.0.1": true, "192.168.1.1": true, "fd00::1": true,
		"203.0.113.255": true, "::ffff:203.0.113.1": true, "198.51.100.9": true,
		"172.32.0.1": false, "198.51.101.1": false, "2001:db8::1": false, "0.0.0.0": false, "::": false,
	} {
		if got := trust.Trusts(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is trusted: got %v, want %v", addr, got, want)
		}
	}
	if !trust.Trusts(netip.Addr{}) {
		t.Error("unix socket: got untrusted")
	}
	if none, err := clientaddr.ParseTrust(nil); err != nil || none.Trusts(netip.MustParseAddr("127.0.0.1")) || none.Trusts(netip.Addr{}) {
		t.Errorf("without proxies: got a trusted address, error %v", err)
	}
	for _, bad := range []string{"", "10.0.0.1/8", "10.0.0.0/33", "localhost", "fe80::1%eth0", "::ffff:0:0/64", "10.0.0.0/8 "} {
		if _, err := clientaddr.ParseTrust([]string{bad}); err == nil {
			t.Errorf("%q: got no error", bad)
		} else if !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: got error %v without the text", bad, err)
		}
	}
}

func TestAllocations(t *testing.T) {
	s, f := source(t, "X-Forwarded-For"), source(t, "Forwarded")
	if n := testing.AllocsPerRun(100, func() {
		s.Client(peer, "6.6.6.6, 203.0.113.7, 10.0.0.9")
		f.Client(peer, `for=6.6.6.6, for="[2a00::1]:443";proto=https`)
		s.Client(peer, "unknown")
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

// clientOfList is the reference implementation of a Source for X-Forwarded-For.
func clientOfList(trusts func(netip.Addr) bool, peer netip.AddrPort, list string) netip.AddrPort {
	if list == "" {
		return peer
	}
	elements := strings.Split(list, ",")
	client := peer
	for i := len(elements) - 1; i >= 0; i-- {
		s := strings.Trim(elements[i], " \t")
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			inner := s
			if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && strings.Contains(s, ":") {
				inner = s[1 : len(s)-1]
			}
			addr, err := netip.ParseAddr(inner)
			if err != nil || inner != s && !addr.Is6() {
				return client
			}
			ap = netip.AddrPortFrom(addr, 0)
		}
		if ap.Addr().Zone() != "" {
			return client
		}
		client = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
		if !trusts(client.Addr()) || i == 0 {
			return client
		}
	}
	return client
}

func FuzzClient(f *testing.F) {
	for _, list := range []string{"1.1.1.1, 10.0.0.1", "[::1]:1,,", "for=\"[::1]:80\";proto=https, for=_x", "a\"b,\\", "[1.2.3.4]:5", "::1:2"} {
		f.Add(list)
	}
	s, fw := source(f, "X-Forwarded-For"), source(f, "Forwarded")
	f.Fuzz(func(t *testing.T, list string) {
		if got, want := s.Client(peer, list), clientOfList(s.Trusts, peer, list); got != want {
			t.Errorf("%q: got %v, want %v", list, got, want)
		} else if quick := s.Client4(list); quick >= 0 && addrPort4(quick) != want {
			t.Errorf("%q: got %#x, want %v", list, quick, want)
		}
		// Only the elements that the proxy adds count, regardless of the client's own.
		for _, added := range []string{"203.0.113.7", "203.0.113.7, 10.0.0.9"} {
			if got := s.Client(peer, list+", "+added); got.Addr().String() != "203.0.113.7" {
				t.Errorf("%q before %q: got %v", list, added, got)
			}
		}
		for _, added := range []string{`for=203.0.113.7`, `for="203.0.113.7:80";by="x,y", for=10.0.0.9`} {
			if got := fw.Client(peer, list+", "+added); got.Addr().String() != "203.0.113.7" {
				t.Errorf("%q before %q: got %v", list, added, got)
			}
		}
		fw.Secure(list)
	})
}

func BenchmarkClient(b *testing.B) {
	for _, list := range []string{"", "203.0.113.7", "6.6.6.6, 203.0.113.7, 10.0.0.9", "2a00:1450:4001:82a::200e"} {
		s := source(b, "X-Forwarded-For")
		b.Run(list, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s.Trusts(peer.Addr()) {
					s.Client(peer, list)
				}
			}
		})
	}
	s := source(b, "Forwarded")
	b.Run("Forwarded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Client(peer, `for=203.0.113.7;proto=https`)
		}
	})
}

func FuzzAddrPort(f *testing.F) {
	for _, s := range []string{"127.0.0.1:80", "1.2.3.4:065535", "1.2.3.4:65536", "1.2.3.4:", "1.2.3.4:+1", "01.2.3.4:1", "[::1]:80", "@", "", ":1", "1.2.3.4:1:2", "::ffff:1.2.3.4:5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, wantErr := netip.ParseAddrPort(s)
		if got, err := clientaddr.ParseAddrPort(s); got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("%q: got %v, %v, want %v, %v", s, got, err, want, wantErr)
		}
	})
}
