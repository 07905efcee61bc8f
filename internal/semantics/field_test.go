package semantics_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/semantics"
)

func TestCheckField(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"Content-Type", "text/html; charset=utf-8", ""},
		{"!#$%&'*+-.^_`|~09", "", ""},
		{"A", "tab\tand caf\u00e9 and \xff", ""},
		{"", "a", "empty name"},
		{"A B", "a", "byte ' ' at offset 1 is not allowed in a name"},
		{"A:", "a", "byte ':' at offset 1 is not allowed in a name"},
		{"A\r\nB", "a", "byte '\\r' at offset 1 is not allowed in a name"},
		{"caf\u00e9", "a", "byte 'Ã' at offset 3 is not allowed in a name"},
		{"A", "a\r\nB: c", "byte '\\r' at offset 1 is not allowed in a value"},
		{"A", "a\nB: c", "byte '\\n' at offset 1 is not allowed in a value"},
		{"A", "\x00", "byte '\\x00' at offset 0 is not allowed in a value"},
		{"A", "abc\x7f", "byte '\\x7f' at offset 3 is not allowed in a value"},
	} {
		got := ""
		if err := semantics.CheckField(c.name, c.value); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, %q: got %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
