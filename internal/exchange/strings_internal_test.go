package exchange

import (
	"strings"
	"testing"
)

// Slices of header values are shared for the same string and no other.
func TestValuesAreShared(t *testing.T) {
	var c Strings
	constant := "max-age=30"
	a, b := c.Values(constant), c.Values(constant)
	if &a[0] != &b[0] {
		t.Error("a constant got two slices")
	}
	if grown := append(a, "x"); &grown[0] == &a[0] || len(b) != 1 {
		t.Error("appending did not copy")
	}
	seen := map[*string]string{}
	for i := range 1000 {
		s := strings.Repeat("v", 1+i%80)
		v := c.Values(s)
		if len(v) != 1 || cap(v) != 1 || v[0] != s {
			t.Fatalf("Values(%q) is %q", s, v)
		}
		if other, shared := seen[&v[0]]; shared && other != s {
			t.Fatalf("%q and %q share a slice", s, other)
		}
		seen[&v[0]] = s
	}
	if v := c.Values(constant[:3]); v[0] != "max" {
		t.Errorf("a piece of a known string is %q", v[0])
	}
}
