package schema

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// This file scans JSON (RFC 8259). Each function takes a text and the offset of the part to scan.
// It returns the offset after the part. If the part is invalid, it returns the offset of the first
// invalid byte, and false.

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func scanWord(b []byte, i int, word string) (int, bool) {
	for j := range len(word) {
		if i+j >= len(b) || b[i+j] != word[j] {
			return i + j, false
		}
	}
	return i + len(word), true
}

func scanNumber(b []byte, i int) (int, bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b) || !isDigit(b[i]):
		return i, false
	case b[i] == '0':
		i++
	default:
		i = skipDigits(b, i)
	}
	if i < len(b) && b[i] == '.' {
		i++
		if i >= len(b) || !isDigit(b[i]) {
			return i, false
		}
		i = skipDigits(b, i)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i >= len(b) || !isDigit(b[i]) {
			return i, false
		}
		i = skipDigits(b, i)
	}
	return i, true
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

// stringFlags report what a string contains in addition to plain ASCII.
type stringFlags uint8

const (
	escaped   stringFlags = 1 << iota // backslash escapes
	beyond                            // bytes beyond ASCII
	notUTF8                           // invalid UTF-8
	surrogate                         // an escaped surrogate that is not part of a pair
)

// scanString scans the string whose opening quotation mark is at i. The content of the string is
// b[i+1:end-1].
func scanString(b []byte, i int) (end int, flags stringFlags, ok bool) {
	start := i + 1
	for i = jsonwire.Plain(b, start); i < len(b); {
		switch c := b[i]; {
		case c == '"':
			if flags&beyond != 0 && !utf8.Valid(b[start:i]) {
				flags |= notUTF8
			}
			return i + 1, flags, true
		case c < ' ':
			return i, flags, false
		case c == '\\':
			flags |= escaped
			if i+1 < len(b) && jsonwire.ShortEscape(b[i+1]) {
				i += 2
				continue
			}
			n, half, good := scanEscape(b, i)
			if !good {
				return n, flags, false
			}
			if half {
				flags |= surrogate
			}
			i = n
			continue
		case c >= utf8.RuneSelf:
			flags |= beyond
			i++
			continue
		}
		i = jsonwire.Plain(b, i)
	}
	return i, flags, false
}

// scanEscape scans an escape, or two escapes that form a surrogate pair. half reports an escaped
// surrogate that is not part of a pair.
func scanEscape(b []byte, i int) (end int, half, ok bool) {
	if i++; i >= len(b) {
		return i, false, false
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, false, true
	case 'u':
		r, end, ok := scanHex(b, i+1)
		if !ok || !utf16.IsSurrogate(r) {
			return end, false, ok
		}
		if end+1 < len(b) && b[end] == '\\' && b[end+1] == 'u' {
			low, pair, ok := scanHex(b, end+2)
			if !ok {
				return pair, false, false
			}
			if utf16.DecodeRune(r, low) != utf8.RuneError {
				return pair, false, true
			}
		}
		return end, true, true
	}
	return i, false, false
}

// scanHex scans four hexadecimal digits.
func scanHex(b []byte, i int) (r rune, end int, ok bool) {
	if r, ok = jsonwire.Hex(b, i); ok {
		return r, i + 4, true
	}
	for end = i; end < len(b) && (isDigit(b[end]) || 'a' <= b[end]|0x20 && b[end]|0x20 <= 'f'); end++ {
	}
	return 0, end, false
}

// appendUnescaped appends the content of a string with its escapes decoded. scanString must have
// accepted the string.
func appendUnescaped(dst, content []byte) []byte {
	for i := 0; i < len(content); {
		c := content[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		i++
		switch c = content[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, end, _ := scanHex(content, i+1)
			if utf16.IsSurrogate(r) {
				both := utf8.RuneError
				if end+1 < len(content) && content[end] == '\\' && content[end+1] == 'u' {
					low, pair, _ := scanHex(content, end+2)
					if both = utf16.DecodeRune(r, low); both != utf8.RuneError {
						end = pair
					}
				}
				r = both
			}
			dst = utf8.AppendRune(dst, r)
			i = end
			continue
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}
