package http1

import "github.com/dunlinhttp/dunlin/internal/semantics"

// Classes of bytes, one bit each. A byte may be in several classes.
const (
	isToken  = 1 << iota // RFC 9110 §5.6.2: methods and field names
	isTarget             // visible ASCII except '#', see target.go
	isPath               // isTarget except '?' and '%', at which the scan of a path stops
	isHost               // RFC 3986 §3.2.2 reg-name without '%', see host.go
	isHex
	isValue // RFC 9110 §5.5: visible ASCII, obs-text, SP and HTAB
)

// class has the classes of each byte.
var class = buildClasses()

// lower maps each byte to lower case, for ASCII letters only.
var lower = buildLower()

func buildClasses() (t [256]uint8) {
	mark := func(bit uint8, bytes string) {
		for i := range len(bytes) {
			t[bytes[i]] |= bit
		}
	}
	const (
		digits   = "0123456789"
		alphanum = digits + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	)
	mark(isHost, "-._~!$&'()*+,;="+alphanum)
	mark(isHex, digits+"abcdefABCDEF")
	for c := range 256 {
		if semantics.IsTokenByte(byte(c)) {
			t[c] |= isToken
		}
		if c > ' ' && c < 0x7F && c != '#' {
			t[c] |= isTarget
			if c != '?' && c != '%' {
				t[c] |= isPath
			}
		}
		if semantics.IsValueByte(byte(c)) {
			t[c] |= isValue
		}
	}
	return t
}

func buildLower() (t [256]byte) {
	for c := range t {
		t[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	return t
}

// equalFold reports whether a and b, of equal length, are equal, ignoring the case of ASCII letters.
func equalFold(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	if string(a) == b { // the usual spelling
		return true
	}
	for i, c := range a {
		if lower[c] != lower[b[i]] {
			return false
		}
	}
	return true
}

// isWord reports whether b is the lower-case word, ignoring case. Setting bit 5 is a correct conversion here: b has no control
// characters, and words consist of letters, digits and '-'.
func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}
