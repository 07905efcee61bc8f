package jsonwire

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Strings are checked and copied eight bytes at a time. For a word w of eight ASCII bytes and a byte q, the expression (w ^
// q*ones) - ones sets the high bit of the first byte that is q. It may also set high bits of later bytes, which is harmless,
// because only the first of these bits is used. Two bytes that differ in one bit are found with one test if that bit is
// first set in all bytes of w: " and & (0x22, 0x26), and < and > (0x3C, 0x3E). Bytes below 0x20 are found by w - 0x20*ones
// in the same way. A byte that is not ASCII has its high bit set in w itself, so it is found, too, and is examined by
// appendEscaped.

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// escapeSet describes the set of ASCII bytes that a mode escapes: by constants for the test described above, and by a table.
// The first pair of constants finds the quote (and &), the second pair < and >. In a mode without HTML escapes, the second
// pair finds the quote again.
type escapeSet struct {
	or1, xor1 uint64
	or2, xor2 uint64
	escaped   [utf8.RuneSelf]bool
}

var escapeSets = [escapings]escapeSet{
	modeHTML: {
		or1: 0x04 * ones, xor1: '&' * ones,
		or2: 0x02 * ones, xor2: '>' * ones,
		escaped: escapedBytes("\"\\<>&"),
	},
	modePlain: {
		or1: 0, xor1: '"' * ones,
		or2: 0, xor2: '"' * ones,
		escaped: escapedBytes("\"\\"),
	},
}

// escapedBytes returns the table of the bytes to escape: the control characters and the bytes of special.
func escapedBytes(special string) (table [utf8.RuneSelf]bool) {
	for c := range 0x20 {
		table[c] = true
	}
	for _, c := range special {
		table[c] = true
	}
	return table
}

// find returns a word whose high bits mark the first byte of w that is in the set or is not ASCII, and possibly later bytes.
// The first byte is the lowest. The result is 0 if w has no such byte.
func (esc *escapeSet) find(w uint64) uint64 {
	return (w | (w - 0x20*ones) |
		((w | esc.or1) ^ esc.xor1 - ones) |
		((w | esc.or2) ^ esc.xor2 - ones) |
		(w ^ '\\'*ones - ones)) & highs
}

// grow makes room for n more bytes. It is not inlined, so that its callers remain small.
//
//go:noinline
func grow(dst []byte, n int) []byte { return slices.Grow(dst, n) }

// appendString appends s as a JSON string.
func appendString(dst []byte, s string, esc *escapeSet) []byte {
	return appendStringTail(append(dst, '"'), s, esc)
}

// appendStringTail appends the part of a JSON string after the opening quote.
func appendStringTail(dst []byte, s string, esc *escapeSet) []byte {
	n, size := len(dst), len(s)
	if cap(dst)-n <= size {
		dst = grow(dst, size+1)
	}
	b := dst[n : n+size+1]
	i := 0 // s[:i] is copied and needs no escape
	var w uint64
	switch {
	case size >= 8: // whole words; the last word overlaps the previous word
		for ; i < size-8; i += 8 {
			w = word64(s, i)
			putWord64(b, i, w)
			if found := esc.find(w); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				return appendEscaped(dst[:n+i], s[i:], esc)
			}
		}
		w = word64(s, size-8)
		putWord64(b, size-8, w)
	case size >= 4: // two overlapping halves
		low, high := word32(s, 0), word32(s, size-4)
		putWord32(b, 0, low)
		putWord32(b, size-4, high)
		w = uint64(low) | uint64(high)<<32
	case size > 0: // the first, the middle and the last of at most three bytes, padded with 'a'
		first, middle, last := s[0], s[size/2], s[size-1]
		b[0], b[size/2], b[size-1] = first, middle, last
		w = uint64(first) | uint64(middle)<<8 | uint64(last)<<16 | 'a'*(ones&^0xFFFFFF)
	default:
		w = 'a' * ones
	}
	if esc.find(w) != 0 {
		return appendEscaped(dst[:n+i], s[i:], esc)
	}
	b[size] = '"'
	return dst[:n+size+1]
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends s and a closing quote. It examines each character.
func appendEscaped(dst []byte, s string, esc *escapeSet) []byte {
	start := 0 // s[start:i] is copied unchanged
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !esc.escaped[c] {
				i++
				continue
			}
			dst = appendEscape(append(dst, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
			start = i + size
		case r == '\u2028' || r == '\u2029':
			// U+2028 and U+2029 end a line in JavaScript, into which JSON strings may be copied.
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&0xF])
			start = i + size
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

// appendEscape appends the escape sequence of one ASCII character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '\\', '"':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}
