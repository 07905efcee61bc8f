package http1

import "fmt"

// FieldError says why a field must not be written. It is meant for the
// programmer who set the field, not for a client.
type FieldError struct {
	Part   string // "name" or "value"
	Offset int    // of the byte in that part
	Byte   byte   // the byte that is not allowed there
	Empty  bool   // the name is empty; Offset and Byte mean nothing
}

func (e *FieldError) Error() string {
	if e.Empty {
		return "field with an empty name"
	}
	return fmt.Sprintf("field %s with byte 0x%02X at offset %d", e.Part, e.Byte, e.Offset)
}

// CheckField returns nil if name and value may be written as a field line
// (RFC 9110 §5.1 and §5.5), and a [FieldError] otherwise.
func CheckField(name, value string) error {
	if name == "" {
		return &FieldError{Part: "name", Empty: true}
	}
	if i := indexNot(name, isToken); i >= 0 {
		return &FieldError{Part: "name", Offset: i, Byte: name[i]}
	}
	if i := indexNot(value, isValue); i >= 0 {
		return &FieldError{Part: "value", Offset: i, Byte: value[i]}
	}
	return nil
}

// ValidFieldName reports whether s is a field name: a token.
func ValidFieldName(s string) bool { return s != "" && indexNot(s, isToken) < 0 }

// ValidFieldValue reports whether s may be written as a field value. CR, LF
// and NUL would end the field or the message (RFC 9110 §5.5); the other
// control bytes but HTAB are refused too, as this package refuses to read them.
func ValidFieldValue(s string) bool { return indexNot(s, isValue) < 0 }

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
