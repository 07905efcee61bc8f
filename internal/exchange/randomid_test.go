package exchange_test

import (
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

func TestRandomID(t *testing.T) {
	var s exchange.Strings
	seen := map[string]bool{}
	digits := map[rune]bool{}
	for range 10_000 {
		id := s.RandomID()
		if len(id) != 26 || strings.Trim(id, "0123456789abcdefghjkmnpqrstvwxyz") != "" || seen[id] {
			t.Fatalf("%q is no identifier, or was there before", id)
		}
		seen[id] = true
		for _, c := range id {
			digits[c] = true
		}
	}
	if len(digits) != 32 {
		t.Errorf("identifiers use %d of 32 digits", len(digits))
	}
}
