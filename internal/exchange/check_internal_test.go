package exchange

import (
	"net/textproto"
	"testing"
)

// slowlyPlain is plainValue, one byte at a time.
func slowlyPlain(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return value == "" || value[0] != ' ' && value[len(value)-1] != ' '
}

func TestPlainValue(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				b := []byte("abcdefghijklmnopqrstuvwxyz"[:length])
				b[at] = byte(c)
				if got, want := plainValue(string(b)), slowlyPlain(string(b)); got != want {
					t.Fatalf("plainValue(%q) is %t", b, got)
				}
			}
		}
	}
}

func FuzzPlainField(f *testing.F) {
	f.Add("X-Request-Id", "0123456789abcdefghjkmnpqrs")
	f.Add("x-a", " a")
	f.Add("Content-Length", "7")
	f.Add("Vary", "a\x7f345678")
	f.Fuzz(func(t *testing.T, name, value string) {
		if plainValue(value) != slowlyPlain(value) {
			t.Errorf("plainValue(%q) is %t", value, plainValue(value))
		}
		if !PlainField(name, value) {
			return
		}
		if err := CheckField(name, value); err != nil || textproto.CanonicalMIMEHeaderKey(name) != name || TrimBlanks(value) != value {
			t.Errorf("%q: %q passes as it is: %v", name, value, err)
		}
	})
}
