package http1

import (
	"encoding/binary"
	"math/bits"
)

// Words of eight equal bytes, to examine eight bytes at a time.
const (
	ones  = 0x0101010101010101
	highs = ones * 0x80
)

// scanToken returns the index of the first byte at or after i that is not allowed in a token, or len(b).
func scanToken(b []byte, i int) int {
	for i < len(b) && class[b[i]]&isToken != 0 {
		i++
	}
	return i
}

// scanValue returns the index of the first byte at or after i that is not allowed in a field value, or len(b). CR and LF are not
// allowed in a value, so one pass both checks a value and finds its end.
func scanValue(b []byte, i int) int {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		// mark has the high bit of each byte that is below 0x20 or equal to 0x7F. A subtraction may also mark higher bytes than the
		// first such byte, because of the borrow, but no lower bytes.
		mark := ((x - ones*0x20) | ((x ^ ones*0x7F) - ones)) & ^x & highs
		if mark == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(mark) / 8
		if b[i] != '\t' {
			return i
		}
		i++
	}
	for i < len(b) && class[b[i]]&isValue != 0 {
		i++
	}
	return i
}

// scanField scans the field line that starts at i (RFC 9112 §5). next is the start of the next line, or 0 if the line is incomplete
// in b. If p is a problem, next is its position. No scan passes an LF, so a line counts as incomplete only if b does not contain its
// LF.
func scanField(b []byte, i int) (f fieldSpan, next int, p problem) {
	colon := scanToken(b, i)
	if colon == len(b) {
		return f, 0, noProblem
	}
	if b[colon] != ':' || colon == i {
		return f, colon, nameProblem(b, i, colon)
	}
	start := colon + 1
	for start < len(b) && (b[start] == ' ' || b[start] == '\t') {
		start++
	}
	stop := scanValue(b, start)
	if stop+1 >= len(b) {
		if stop < len(b) && b[stop] != '\r' {
			return f, stop, valueProblem(b[stop])
		}
		return f, 0, noProblem
	}
	if b[stop] != '\r' {
		return f, stop, valueProblem(b[stop])
	}
	if b[stop+1] != '\n' {
		return f, stop, bareCR
	}
	end := stop
	for end > start && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	f.name = span{uint32(i), uint32(colon)}
	f.value = span{uint32(start), uint32(end)}
	return f, stop + 2, noProblem
}

// nameProblem returns the reason why the field name b[start:end] is refused. b[end] is the first byte after start that is not allowed
// in a token. It is ':' only if the name is empty.
func nameProblem(b []byte, start, end int) problem {
	switch c := b[end]; {
	case c == '\n':
		return bareLF
	case c == ':':
		return emptyFieldName
	case c == ' ' || c == '\t':
		if end == start {
			return foldedField
		}
		return spaceBeforeColon
	case c == '\r' && end+1 < len(b) && b[end+1] != '\n':
		return bareCR
	case c == '\r':
		return missingColon
	}
	return badFieldName
}

// valueProblem returns the reason why the byte c, which is not CR, cannot follow a field value.
func valueProblem(c byte) problem {
	if c == '\n' {
		return bareLF
	}
	return controlInValue
}
