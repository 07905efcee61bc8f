package jsonwire

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// This file parses the grammar of JSON (RFC 8259) with stateless functions on a slice of bytes. Each takes the start position
// of its part and returns the position after it. On failure it returns the position of the first invalid byte, or len(data)
// if the text ends too early, and false.

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

// stops returns a word with the high bit set in the first byte of w (the lowest) that ends a plain part of a string: a quote,
// a backslash, a control character, or a byte that is not ASCII. Later bytes may be set too. It returns 0 if there is none.
// text.go explains the method.
func stops(w uint64) uint64 {
	return (w | (w - 0x20*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) & highs
}

// stopsBeyondASCII is stops for text that may contain more than ASCII.
func stopsBeyondASCII(w uint64) uint64 {
	return ((w - 0x20*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) &^ w & highs
}

// scanPlain returns the position of the first byte from i on that ends a plain part of a string, see stops.
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

// Plain is scanPlain for other readers of JSON.
func Plain(data []byte, i int) int { return scanPlain(data, i) }

// scanStretch is scanPlain for text that may contain more than ASCII.
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

// scanString reads a string from the position after its opening quote to the position after its closing quote, and reports
// whether it has escapes. Like encoding/json it accepts invalid UTF-8 and unpaired surrogates.
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

// unescaped maps the second byte of a two-byte escape to its value; 0 for other bytes.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// ShortEscape reports whether an escape of two bytes has c as its second byte.
func ShortEscape(c byte) bool { return unescaped[c] != 0 }

// scanEscape reads an escape from the position after its backslash.
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

// hexValues has the values of hexadecimal digits, -1 for other bytes.
var hexValues = func() (values [256]int16) {
	for c := range values {
		values[c] = -1
	}
	for i, c := range "0123456789abcdef" {
		values[c], values[unicode.ToUpper(c)] = int16(i), int16(i)
	}
	return values
}()

// Hex returns the number of the four hexadecimal digits at i.
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

// scanWord reads one of the words null, true and false, whose first byte has been checked.
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

// scanScalar reads a value that is neither an object nor an array.
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
