package ws

import "unicode/utf8"

// A UTF8 checks whether text that arrives in pieces is valid UTF-8. It detects an error at the first byte that no valid
// character can have. The zero value is ready for a new text.
type UTF8 struct {
	rest [utf8.UTFMax]byte // incomplete character
	n    uint8             // number of bytes of rest
}

// Next checks the next piece of the text, and reports whether the text may still be valid.
func (u *UTF8) Next(p []byte) bool {
	for u.n > 0 && len(p) > 0 {
		u.rest[u.n] = p[0]
		u.n++
		p = p[1:]
		if utf8.FullRune(u.rest[:u.n]) { // FullRune also returns true for an invalid character
			if !utf8.Valid(u.rest[:u.n]) {
				return false
			}
			u.n = 0
		}
	}
	whole := len(p)
	for i := len(p) - 1; i >= 0 && i >= len(p)-(utf8.UTFMax-1); i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				whole = i
			}
			break
		}
	}
	if !utf8.Valid(p[:whole]) {
		return false
	}
	if whole < len(p) {
		u.n = uint8(copy(u.rest[:], p[whole:]))
	}
	return true
}

// Complete reports whether the pieces up to now end with a complete character.
func (u *UTF8) Complete() bool { return u.n == 0 }
