package admission_test

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%1", "fe80::2%1", false},
		{"64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", false},
		{"64:ff9b::192.0.2.1", "192.0.2.1", true},
		{"64:ff9b:1::192.0.2.1", "64:ff9b:1::192.0.2.2", true},
		{"::1", "0.0.0.1", false},
		{"::1", "127.0.0.1", false},
	} {
		both := admission.NewAddresses(1)
		x, y := netip.MustParseAddr(c.a), netip.MustParseAddr(c.b)
		if !both.Take(x) {
			t.Fatalf("%v: the first is refused", x)
		}
		if got := !both.Take(y); got != c.same {
			t.Errorf("%v and %v share a bound: %v, want %v", x, y, got, c.same)
		}
	}
}

func TestNetwork(t *testing.T) {
	for _, c := range []struct {
		ip   string
		bits int
		want string
	}{
		{"192.0.2.1", 64, "192.0.2.1"},
		{"::ffff:192.0.2.1", 48, "192.0.2.1"},
		{"64:ff9b::192.0.2.1", 48, "192.0.2.1"},
		{"2001:db8:1:2:3::1", 64, "2001:db8:1:2::"},
		{"2001:db8:1:2:3::1", 48, "2001:db8:1::"},
		{"2001:db8:1:2:3::1", 128, "2001:db8:1:2:3::1"},
		{"fe80::1%eth0", 48, "fe80::1"},
	} {
		if got := admission.Network(netip.MustParseAddr(c.ip), c.bits); got.String() != c.want {
			t.Errorf("the first %d bits of %s are %v, want %s", c.bits, c.ip, got, c.want)
		}
	}
	if got := admission.Network(netip.Addr{}, 64); got.IsValid() {
		t.Errorf("no address: %v", got)
	}
}

func TestAddressesBound(t *testing.T) {
	a := admission.NewAddresses(3)
	ip := netip.MustParseAddr("192.0.2.1")
	for round := range 3 {
		for i := range 5 {
			if got := a.Take(ip); got != (i < 3) {
				t.Errorf("round %d: the connection %d is taken: %v", round, i+1, got)
			}
		}
		for range 3 {
			a.Release(ip)
		}
		if n := a.Len(); n != 0 {
			t.Errorf("%d entries when nothing is open", n)
		}
	}
	for range 5 {
		if !a.Take(netip.Addr{}) {
			t.Error("a peer without an address is refused")
		}
	}
	none := admission.NewAddresses(0)
	if !none.Take(ip) || none.Len() != 0 {
		t.Error("no bound, but it refuses")
	}
	none.Release(ip)
}

// Many addresses that are used for a short time, by many goroutines, leave no entries.
func TestAddressesForget(t *testing.T) {
	a := admission.NewAddresses(2)
	var wg sync.WaitGroup
	for g := range uint32(4) {
		wg.Go(func() {
			ip := func(i uint32) netip.Addr {
				return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, g<<24+i)))
			}
			for i := range uint32(5000) {
				for n := range 3 {
					if got := a.Take(ip(i)); got != (n < 2) {
						t.Errorf("%v: connection %d is taken: %v", ip(i), n+1, got)
					}
				}
			}
			for i := range uint32(5000) {
				a.Release(ip(i))
				a.Release(ip(i))
			}
		})
	}
	wg.Wait()
	if n := a.Len(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
