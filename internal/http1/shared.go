package http1

// The checks of this file are shared with HTTP/2: the bytes that are allowed in a path, an authority, a method and a value,
// and the fields that are allowed in trailers.

// MaxMethod is the maximum length of a method, in bytes.
const MaxMethod = maxMethod

// ScanTarget reads a request target in origin or asterisk form that is not part of a request line. pathEnd is the end of the
// path, before the '?' of the query. escaped reports whether the path has percent escapes. ok is false if a byte is not
// allowed in a target or an escape is malformed.
func ScanTarget(target []byte) (pathEnd int, escaped, ok bool) {
	var h Head
	pathEnd, end := h.scanTarget(target, 0)
	if end < len(target) {
		return 0, false, false
	}
	if h.PathEscaped {
		h.path = span{0, uint32(pathEnd)}
		_, p := h.checkEscapes(target)
		return pathEnd, h.PathEscaped, p == noProblem
	}
	return pathEnd, false, true
}

// ValidAuthority reports whether b is a non-empty host with an optional port (RFC 9110 §7.2).
func ValidAuthority(b []byte) bool { return len(b) > 0 && validAuthority(b) }

// HasPort reports whether a valid authority has a non-empty port.
func HasPort(authority []byte) bool {
	return len(authority) > 0 && isDigit(authority[len(authority)-1]) && portStart(authority) > 0
}

// ReadExpect parses a value of Expect. The value is a list that may be empty or repeat an expectation, because proxies join
// repeated lines. continues reports whether the list contains 100-continue. known is false if the list contains another
// expectation, for which RFC 9110 §10.1.1 permits the status 417.
func ReadExpect(value []byte) (continues, known bool) {
	for len(value) > 0 {
		var member []byte
		if member, value = nextMember(value); len(member) == 0 {
			continue
		}
		if !isWord(member, "100-continue") {
			return false, false
		}
		continues = true
	}
	return continues, true
}

// IsToken reports whether b is a token (RFC 9110 §5.6.2).
func IsToken(b []byte) bool { return len(b) > 0 && all(b, isToken) }

// IsValue reports whether all bytes of b are allowed in a field value: no control characters except HTAB.
func IsValue(b []byte) bool { return all(b, isValue) }

func all(b []byte, bit uint8) bool {
	for _, c := range b {
		if class[c]&bit == 0 {
			return false
		}
	}
	return true
}

// ForbiddenInTrailer reports whether the named field is forbidden in trailers, in all versions of HTTP (RFC 9110 §6.5.1).
func ForbiddenInTrailer(name []byte) bool { return forbiddenInTrailer(name) }

// ParseContentLength parses a value of Content-Length. ok is false unless it is a number of at most 63 bits.
func ParseContentLength(value []byte) (n int64, ok bool) {
	h := Head{ContentLength: -1}
	p := h.contentLengthField(value)
	return h.ContentLength, p == noProblem
}

// EqualFold reports whether a and b are equal, ignoring the case of ASCII letters.
func EqualFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if lower[c] != lower[b[i]] {
			return false
		}
	}
	return true
}
