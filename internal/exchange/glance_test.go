package exchange_test

import (
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Set finds a name without regard to its case, and no other names.
func TestNamesSet(t *testing.T) {
	all := []string{"X-Host", "X-Forwarded-For", "X-Forwarded-Uri", "Forwarded", strings.Repeat("x", 39)}
	names := exchange.NewNames(all...)
	for i, name := range all {
		for _, same := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if set := names.Set(same); set != 1<<i {
				t.Errorf("%s: got %b", same, set)
			}
		}
		for at := range len(name) {
			for c := range byte(128) {
				other := name[:at] + string(rune(c)) + name[at+1:]
				if set := names.Set(other); (set != 0) != strings.EqualFold(other, name) {
					t.Errorf("%q: got %b", other, set)
				}
			}
		}
	}
	for _, none := range []string{"", "x", strings.Repeat("x", 38), strings.Repeat("x", 40), strings.Repeat("x", 400), "8-Host"} {
		if set := names.Set(none); set != 0 {
			t.Errorf("%q: got %b", none, set)
		}
	}
}

// Connection is in no set by name: wires report whether it names fields.
func TestNamesFields(t *testing.T) {
	names := exchange.NewNames("Cookie", "Connection")
	if names.Set("Connection") != 0 || names.NamesFields != 1<<1 || names.Set("cookie") != 1<<0 || exchange.NewNames("Cookie").NamesFields != 0 {
		t.Errorf("got %b, %b", names.Set("Connection"), names.NamesFields)
	}
}
