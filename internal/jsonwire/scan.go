package jsonwire

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// This file checks the grammar of JSON (RFC 8259) with stateless functions on a slice of bytes. Each function takes the start
// position of its part of the text and returns the position after the part. If the part is invalid, the function returns
// false, and the position of the first invalid byte or, if the text ends too early, len(data).

// spaces has a bit for each byte that is white space.
const spaces uint64 = 1<<' ' | 1<<'\t' | 1<<'\r' | 1<<'\n'

// isSpace reports whether c is white space. c must be at most ' '.
func isSpace(c byte) bool { return spaces>>c&1 != 0 }

// skipSpace returns the position of the first byte that is not white space, starting at i.
func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' {
		if len(data)-i >= 8 && load64(data, i) == ' '*ones { // indentation
			i += 8
			continue
		}
		if !isSpace(data[i]) {
			break
		}
		i++
	}
	return i
}

// load64 returns the eight bytes of data at i, little endian.
func load64(data []byte, i int) uint64 { return binary.LittleEndian.Uint64(data[i:]) }

// stops finds the first byte of w that ends a plain part of a string: a quote, a backslash, a control character, or a byte
// that is not ASCII. The result has the high bit set in that byte, and possibly in later bytes. The first byte is the lowest.
// The result is 0 if no byte of w ends a plain part. text.go explains the method.
func stops(w uint64) uint64 {
	return (w | (w - 0x20*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) & highs
}

// stopsBeyondASCII is like the function stops, except that bytes that are not ASCII do not end a plain part.
func stopsBeyondASCII(w uint64) uint64 {
	return ((w - 0x20*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) &^ w & highs
}

// scanPlain returns the position of the first byte from i on that ends a plain part of a string (see the function stops).
func scanPlain(data []byte, i int) int {
	for ; len(data)-i >= 8; i += 8 {
		if found := stops(load64(data, i)); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(data) && data[i] >= ' ' && data[i] < utf8.RuneSelf && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// Plain is scanPlain for other packages that read JSON.
func Plain(data []byte, i int) int { return scanPlain(data, i) }

// scanStretch is like scanPlain, except that bytes that are not ASCII do not end a plain part.
func scanStretch(data []byte, i int) int {
	for ; len(data)-i >= 8; i += 8 {
		if found := stopsBeyondASCII(load64(data, i)); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// scanString reads a string. i is the position after the opening quote, and next is the position after the closing quote.
// escaped reports whether the string has escapes. Like encoding/json it accepts invalid UTF-8 and unpaired surrogates.
func scanString(data []byte, i int) (next int, escaped, ok bool) {
	for {
		i = scanStretch(data, i)
		switch {
		case i >= len(data):
			return i, escaped, false
		case data[i] == '"':
			return i + 1, escaped, true
		case data[i] != '\\':
			return i, escaped, false
		}
		escaped = true
		for i < len(data) && data[i] == '\\' { // escapes are often adjacent
			if i+1 < len(data) && unescaped[data[i+1]] != 0 {
				i += 2
			} else if i, ok = scanEscape(data, i+1); !ok {
				return i, escaped, false
			}
		}
	}
}

// unescaped maps the byte after the backslash of a two-byte escape to the value of the escape, and all other bytes to 0.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// ShortEscape reports whether a backslash and c form an escape of two bytes.
func ShortEscape(c byte) bool { return unescaped[c] != 0 }

// scanEscape reads an escape. i is the position after the backslash.
func scanEscape(data []byte, i int) (next int, ok bool) {
	if i >= len(data) {
		return i, false
	}
	if unescaped[data[i]] != 0 {
		return i + 1, true
	}
	if data[i] != 'u' {
		return i, false
	}
	if _, ok := Hex(data, i+1); ok {
		return i + 5, true
	}
	for i++; i < len(data) && hexValues[data[i]] >= 0; i++ {
	}
	return i, false
}

// hexValues maps hexadecimal digits to their values, and all other bytes to -1.
var hexValues = func() (values [256]int16) {
	for c := range values {
		values[c] = -1
	}
	for i, c := range "0123456789abcdef" {
		values[c], values[unicode.ToUpper(c)] = int16(i), int16(i)
	}
	return values
}()

// Hex returns the number that four hexadecimal digits at i form.
func Hex(data []byte, i int) (r rune, ok bool) {
	if len(data)-i < 4 {
		return 0, false
	}
	a, b, c, d := hexValues[data[i]], hexValues[data[i+1]], hexValues[data[i+2]], hexValues[data[i+3]]
	return rune(a)<<12 | rune(b)<<8 | rune(c)<<4 | rune(d), a|b|c|d >= 0
}

// scanNumber reads a number.
func scanNumber(data []byte, i int) (next int, ok bool) {
	if i < len(data) && data[i] == '-' {
		i++
	}
	if i < len(data) && data[i] == '0' {
		i++
	} else if i, ok = scanDigits(data, i); !ok {
		return i, false
	}
	if i < len(data) && data[i] == '.' {
		if i, ok = scanDigits(data, i+1); !ok {
			return i, false
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		return scanDigits(data, i)
	}
	return i, true
}

// scanDigits reads one or more digits.
func scanDigits(data []byte, i int) (next int, ok bool) {
	start := i
	for i < len(data) && data[i]-'0' <= 9 {
		i++
	}
	return i, i > start
}

// scanWord reads one of the words null, true and false. The caller has checked the first byte.
func scanWord(data []byte, i int, word string) (next int, ok bool) {
	if len(data)-i >= len(word) && string(data[i:i+len(word)]) == word {
		return i + len(word), true
	}
	for n := range len(word) {
		if i >= len(data) || data[i] != word[n] {
			break
		}
		i++
	}
	return i, false
}

// scanScalar reads a string, a number, or one of the words null, true and false.
func scanScalar(data []byte, i int) (next int, ok bool) {
	if i >= len(data) {
		return i, false
	}
	switch c := data[i]; c {
	case '"':
		next, _, ok = scanString(data, i+1)
		return next, ok
	case 'n':
		return scanWord(data, i, "null")
	case 't':
		return scanWord(data, i, "true")
	case 'f':
		return scanWord(data, i, "false")
	default:
		if c == '-' || c-'0' <= 9 {
			return scanNumber(data, i)
		}
	}
	return i, false
}
