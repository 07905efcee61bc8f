package exchange

import (
	"math/rand/v2"
	"testing"
)

// Each digit is the one of its five bits.
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
