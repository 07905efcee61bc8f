package jsonwire

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Strings copies borrowed bytes into strings that remain valid. It copies short strings one after the other into a piece of memory of
// pieceSize bytes. A piece is freed together with its last string, so a string that is retained keeps at most pieceSize bytes of other
// strings alive. The zero Strings is ready to use. It is not safe for concurrent use.
//
// Invariant: the bytes of the piece before rest belong to returned strings and are never written again.
type Strings struct {
	rest []byte // the unused part of the current piece
}

const (
	pieceSize = 4 << 10       // bytes
	maxShared = pieceSize / 4 // longer strings have their own allocation
	copyBlock = 16            // short strings are copied by one move of this size
)

// copy returns a string with a copy of b. expect is the number of bytes that this string and the following strings may need, so that a
// short text does not allocate a complete piece.
func (s *Strings) copy(b []byte, expect int) string {
	if len(b) == 0 {
		return ""
	}
	if !s.room(len(b), expect) {
		return string(b)
	}
	n := copy(s.rest, b)
	made := bytesString(s.rest[:n])
	s.rest = s.rest[n:]
	return made
}

// room makes room for n bytes in the current piece or in a new piece. It returns false if a string of n bytes needs its own allocation.
func (s *Strings) room(n, expect int) bool {
	if n > len(s.rest) {
		if n > maxShared {
			return false
		}
		s.rest = make([]byte, max(n, min(pieceSize, expect)))
	}
	return true
}

// unquote is like the method copy, for the inside of a JSON string: the bytes between its quotes. It decodes escapes. extra is the
// result of replacementBytes(raw). invalid reports whether the string contained invalid UTF-8 or an unpaired surrogate; both are
// replaced by U+FFFD.
func (s *Strings) unquote(raw []byte, extra, expect int) (made string, invalid bool) {
	if extra == 0 && s.room(len(raw), expect) {
		out, invalid := appendUnquoted(s.rest[:0], raw)
		s.rest = s.rest[len(out):]
		return bytesString(out), invalid
	}
	out, invalid := appendUnquoted(make([]byte, 0, len(raw)+extra), raw)
	return bytesString(out), invalid
}

// replacementBytes returns the number of bytes by which decoding can lengthen the inside of a JSON string. Each byte of invalid UTF-8 is
// replaced by the three bytes of U+FFFD, which adds two bytes. The value of an escape is never longer than the escape.
func replacementBytes(raw []byte) (n int) {
	if utf8.Valid(raw) {
		return 0
	}
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			n += len("\uFFFD") - 1
		}
		raw = raw[size:]
	}
	return n
}

// appendUnquoted appends the decoded inside of a JSON string (see Strings.unquote). scanString must have accepted the string.
func appendUnquoted(dst, raw []byte) (out []byte, invalid bool) {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' && raw[i] < utf8.RuneSelf {
			end := scanPlain(raw, i)
			dst = append(dst, raw[i:end]...)
			i = end
			continue
		}
		var r rune
		var size int
		if raw[i] == '\\' {
			if c := unescaped[raw[i+1]]; c != 0 {
				dst = append(dst, c)
				i += 2
				continue
			}
			r, size = unescape(raw[i:])
		} else {
			r, size = utf8.DecodeRune(raw[i:])
		}
		if r == utf8.RuneError {
			invalid = invalid || size == 1 || raw[i] == '\\' && surrogate(raw[i:])
		}
		dst = utf8.AppendRune(dst, r)
		i += size
	}
	return dst, invalid
}

// hasInvalid reports whether the inside of a JSON string contains invalid UTF-8 or an unpaired surrogate. The result is that of
// appendUnquoted.
func hasInvalid(raw []byte) bool {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			next := bytes.IndexByte(raw[i:], '\\')
			if next < 0 {
				break
			}
			i += next
		}
		size := 2
		if raw[i+1] == 'u' {
			var r rune
			if r, size = unescape(raw[i:]); r == utf8.RuneError && surrogate(raw[i:]) {
				return true
			}
		}
		i += size
	}
	return !utf8.Valid(raw)
}

// unescape decodes the escape at the beginning of b, or two escapes that form a surrogate pair. size is their length. An unpaired
// surrogate becomes U+FFFD.
func unescape(b []byte) (r rune, size int) {
	if c := unescaped[b[1]]; c != 0 {
		return rune(c), 2
	}
	r = hexRune(b)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(r, hexRune(b[6:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// hexRune returns the number in the escape at the beginning of b, which must be \u and four hexadecimal digits.
func hexRune(b []byte) rune {
	r, _ := Hex(b, 2)
	return r
}

// surrogate reports whether the escape at the beginning of b denotes a surrogate.
func surrogate(b []byte) bool { return b[1] == 'u' && utf16.IsSurrogate(hexRune(b)) }
