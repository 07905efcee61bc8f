package semantics

import (
	"errors"
	"fmt"
)

// IsTokenByte reports whether c is allowed in a token, such as a method or a field name (RFC 9110 section 5.6.2).
func IsTokenByte(c byte) bool { return class[c]&inToken != 0 }

// IsValueByte reports whether c is allowed in a field value: visible ASCII, obs-text, SP and HTAB (RFC 9110 section 5.5).
func IsValueByte(c byte) bool { return class[c]&inValue != 0 }

const (
	inToken = 1 << iota
	inValue
)

// class maps each byte to its classes.
var class = func() (t [256]uint8) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		t[c] |= inToken
	}
	for c := range 256 {
		if c >= ' ' && c != 0x7F || c == '\t' {
			t[c] |= inValue
		}
	}
	return t
}()

var errEmptyName = errors.New("empty name")

// CheckField returns an error if name and value must not be written as a field line (RFC 9110 sections 5.1 and 5.5). The
// error is for the program that has set them, not for a client. CR, LF and NUL would end the field or the message. Other
// control bytes, except HTAB, are also refused, because parsers of requests do not accept them.
func CheckField(name, value string) error {
	if name == "" {
		return errEmptyName
	}
	if i := indexNot(name, inToken); i >= 0 {
		return fmt.Errorf("byte %q at offset %d is not allowed in a name", name[i], i)
	}
	if i := indexNot(value, inValue); i >= 0 {
		return fmt.Errorf("byte %q at offset %d is not allowed in a value", value[i], i)
	}
	return nil
}

// indexNot returns the index of the first byte of s that does not belong to the class want, or -1.
func indexNot(s string, want uint8) int {
	for i := range len(s) {
		if class[s[i]]&want == 0 {
			return i
		}
	}
	return -1
}
