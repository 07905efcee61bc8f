package jsonwire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// This file reads the grammar of JSON (RFC 8259): functions without state on a
// slice of bytes. Each takes the position where its part begins and returns the
// one behind it. On failure it returns the position of the first byte that may
// not stand there, len(data) when the text ends too early, and false.

// spaces has a bit for each byte that is white space.
const spaces uint64 = 1<<' ' | 1<<'\t' | 1<<'\r' | 1<<'\n'

// isSpace reports whether c is white space; c ≤ ' '.
func isSpace(c byte) bool { return spaces>>c&1 != 0 }

// skipSpace returns the position of the first byte from i on that is no white
// space.
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

// load64 is the eight bytes of data from i on, the first of them lowest.
func load64(data []byte, i int) uint64 { return binary.LittleEndian.Uint64(data[i:]) }

// stops returns a word with the high bit set in the first byte of w (the lowest)
// at which a plain stretch of a string ends, and perhaps in later ones: a quote,
// a backslash, a control character, and what is not ASCII. 0 if there is none.
// How it works stands in text.go.
func stops(w uint64) uint64 {
	return (w | (w - 0x20*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) & highs
}

// stopsBeyondASCII is stops for stretches that may hold more than ASCII.
func stopsBeyondASCII(w uint64) uint64 {
	return ((w - 0x20*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) &^ w & highs
}

// scanPlain returns the position of the first byte from i on at which a plain
// stretch of a string ends (see stops).
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

// scanStretch is scanPlain for stretches that may hold more than ASCII.
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

// scanString reads a string from behind its opening quote to behind its closing
// one, and tells whether there are escapes in it. Like encoding/json it lets
// invalid UTF-8 and unpaired surrogates pass.
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
		if i, ok = scanEscape(data, i+1); !ok {
			return i, escaped, false
		}
	}
}

// scanEscape reads an escape from behind its backslash.
func scanEscape(data []byte, i int) (next int, ok bool) {
	if i >= len(data) {
		return i, false
	}
	switch data[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, true
	case 'u':
		for range 4 {
			if i++; i >= len(data) || unhex(data[i]) < 0 {
				return i, false
			}
		}
		return i + 1, true
	}
	return i, false
}

// unhex is the value of a hexadecimal digit, -1 for another byte.
func unhex(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
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

// scanWord reads one of the words null, true and false, whose first byte is
// known to be right.
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
