package exchange

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Each digit encodes its five bits.
func TestDigits(t *testing.T) {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	for range 10_000 {
		n := rand.Uint64()
		got := digits(n)
		for at := range 8 {
			if want := alphabet[n>>(5*at)&31]; byte(got>>(8*at)) != want {
				t.Fatalf("digit %d of %#x is %q, want %q", at, n, byte(got>>(8*at)), want)
			}
		}
	}
}

// Visible is correct for each byte at each position.
func TestVisible(t *testing.T) {
	for length := 1; length <= 20; length++ {
		for at := range length {
			for c := range 256 {
				for _, around := range []string{"!", "~", "a"} {
					s := strings.Repeat(around, at) + string([]byte{byte(c)}) + strings.Repeat(around, length-at-1)
					if got, want := Visible(s), '!' <= c && c <= '~'; got != want {
						t.Fatalf("%q is visible: %v, want %v", s, got, want)
					}
				}
			}
		}
	}
}
