package http1

import (
	"errors"
	"fmt"
)

var errEmptyName = errors.New("empty name")

// CheckField returns an error unless name and value may be written as a field line (RFC 9110 §5.1 and §5.5). The error
// is for the programmer who set them, not for a client. CR, LF and NUL would end the field or the message. The other
// control bytes except HTAB are refused too, as this package refuses to read them.
func CheckField(name, value string) error {
	if name == "" {
		return errEmptyName
	}
	if i := indexNot(name, isToken); i >= 0 {
		return fmt.Errorf("byte %q at offset %d may not stand in a name", name[i], i)
	}
	if i := indexNot(value, isValue); i >= 0 {
		return fmt.Errorf("byte %q at offset %d may not stand in a value", value[i], i)
	}
	return nil
}

// indexNot returns the index of the first byte of s that has no bit of want,
// or -1.
func indexNot(s string, want uint8) int {
	for i := range len(s) {
		if class[s[i]]&want == 0 {
			return i
		}
	}
	return -1
}
