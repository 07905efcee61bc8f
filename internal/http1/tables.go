package http1

import "github.com/dunlinhttp/dunlin/internal/semantics"

// Classes of bytes. Each class has a bit, so that a byte may be in several classes.
const (
	isToken  = 1 << iota // RFC 9110 §5.6.2: methods and field names
	isTarget             // visible ASCII except '#', see target.go
	isPath               // isTarget except '?' and '%', at which the scan of a path stops
	isHost               // RFC 3986 §3.2.2 reg-name without '%', see host.go
	isHex
	isValue // RFC 9110 §5.5: visible ASCII, obs-text, SP and HTAB
)

// class maps each byte to its classes.
var class = buildClasses()

// lower maps ASCII letters to lower case, and other bytes to themselves.
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

// equalFold reports whether a and b are equal without regard to the case of ASCII letters.
func equalFold(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	if string(a) == b { // most clients use this spelling
		return true
	}
	for i, c := range a {
		if lower[c] != lower[b[i]] {
			return false
		}
	}
	return true
}

// isWord reports whether b equals word without regard to case. word must be in lower case. Setting bit 5 is a correct
// conversion to lower case here, because b has no control characters, and word consists of letters, digits and '-'.
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
