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
		var i exchange.Identity
		id := i.Text(&s)
		if len(id) != 26 || strings.Trim(id, "0123456789abcdefghjkmnpqrstvwxyz") != "" || seen[id] {
			t.Fatalf("%q is no identifier, or was there before", id)
		}
		seen[id] = true
		for _, c := range id {
			digits[c] = true
		}
	}
	var one, other exchange.Identity
	n := one.Number(&s)
	if text := one.Text(&s); text != n.String() || one.Text(&s) != text || one.Number(&s) != n || seen[text] {
		t.Errorf("the number of %q is %v, then %v", text, n, one.Number(&s))
	}
	if other = exchange.Named("a"); other.Number(&s) != 0 || other.Text(&s) != "a" || other.IsZero() {
		t.Errorf("a name becomes %q", other.Text(&s))
	}
	if taken, ok := exchange.NamedVisibly("a", 1); !ok || taken.Number(&s) != 0 || taken.Text(&s) != "a" || taken.String() != "a" || taken.Short(&s).String() != "a" || taken.IsZero() {
		t.Errorf("a name that was taken over becomes %q, %v", taken.Text(&s), ok)
	}
	for _, bad := range []string{"", "ab", " ", "\x7f", "\x80"} {
		if _, ok := exchange.NamedVisibly(bad, 1); ok {
			t.Errorf("%q is taken over", bad)
		}
	}
	if len(digits) != 32 {
		t.Errorf("identifiers use %d of 32 digits", len(digits))
	}
}
