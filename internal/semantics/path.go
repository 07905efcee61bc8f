package semantics

import "strings"

// AppendCanonical appends the canonical form of an escaped path to dst: every escape is replaced by its byte, except that
// an escaped slash becomes %2F and an escaped percent sign %25. Package router gives the reason. A path without '%' is
// already canonical. bad is the offset of a percent sign that is not followed by two hexadecimal digits, or -1. If bad is
// not -1, the part before it was appended.
func AppendCanonical(dst []byte, escaped string) (canonical []byte, bad int) {
	for i := 0; ; {
		n := strings.IndexByte(escaped[i:], '%')
		if n < 0 {
			return append(dst, escaped[i:]...), -1
		}
		dst = append(dst, escaped[i:i+n]...)
		i += n
		if len(escaped)-i < 3 || !isHex(escaped[i+1]) || !isHex(escaped[i+2]) {
			return dst, i
		}
		switch b := unhex(escaped[i+1])<<4 | unhex(escaped[i+2]); b {
		case '/':
			dst = append(dst, "%2F"...)
		case '%':
			dst = append(dst, "%25"...)
		default:
			dst = append(dst, b)
		}
		i += 3
	}
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

// unhex returns the value of a hexadecimal digit. isHex must be true for c.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
