package exchange

import (
	"strings"
	"testing"
)

// Slices of header values are shared for the same string, and only for it.
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

// The first chunk is small for a request with few strings. Many strings need few chunks.
func TestStringsGrow(t *testing.T) {
	var c Strings
	text := []byte("0123456789")
	var all []string
	pieces := 0
	for i := range 2000 {
		before := len(c.rest)
		all = append(all, c.Copy(text))
		if len(c.rest) > before {
			if pieces++; i == 0 && len(c.rest) > firstSize {
				t.Errorf("the first piece has %d bytes", len(c.rest))
			}
		}
	}
	if pieces > 2+2000*len(text)/chunkSize {
		t.Errorf("%d pieces for %d bytes", pieces, 2000*len(text))
	}
	for _, s := range all {
		if s != string(text) {
			t.Fatalf("a copy is %q", s)
		}
	}
	for n := range maxChunked + 2 { // of any length, from any offset
		var c Strings
		want := strings.Repeat("x", n)
		if got := c.Copy([]byte(want)); got != want {
			t.Fatalf("a copy of %d bytes has %d", n, len(got))
		}
	}
}
