//go:build linux

package looph2

import (
	"hash/maphash"
	"net/netip"
	"testing"
	"time"
)

// Addresses are distrusted for a while after their clients sent too much; all addresses of a host's network count as the host.
func TestDistrustedAddresses(t *testing.T) {
	at := func(second int64) int64 { return second * int64(time.Second) }
	for _, c := range []struct {
		did, from string
		at        int64
		want      bool
	}{
		{"", "192.0.2.1", 5, false},
		{"", "2001:db8::1", 5, false},
		{"192.0.2.1", "192.0.2.1", 5, true},
		{"192.0.2.1", "::ffff:192.0.2.1", 5, true},
		{"192.0.2.1", "192.0.2.1", 14, true},
		{"192.0.2.1", "192.0.2.1", 15, false},
		{"192.0.2.1", "192.0.2.2", 5, false},
		{"2001:db8::1", "2001:db8::1", 6, true},
		{"2001:db8::1", "2001:db8::ffff:1", 6, true},
		{"2001:db8::1", "2001:db8:0:1::1", 6, false},
	} {
		o := offenders{seed: maphash.MakeSeed()} // one for each, since two addresses may share a place
		if c.did != "" {
			o.add(netip.MustParseAddr(c.did), at(5))
		}
		o.add(netip.Addr{}, at(5)) // a unix socket's, or that of a connection of many clients
		if got := o.has(netip.MustParseAddr(c.from), at(c.at)); got != c.want {
			t.Errorf("%q did too much: %s after %d s: got %v", c.did, c.from, c.at, got)
		}
		if o.has(netip.Addr{}, at(5)) {
			t.Error("a client without an address is distrusted")
		}
	}
}
