package router

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// The path of a request is percent-encoded, so that one resource has many spellings. Routing uses one of them, the canonical path:
// every escape is replaced by its byte, except that an escaped slash is written %2F and an escaped percent sign %25. So the
// canonical form of /caf%C3%A9 is /café. A slash that was escaped does not split a segment, and every '%' in a canonical path begins
// an escape.

// An EscapeError reports a percent sign that is not followed by two hexadecimal digits.
type EscapeError struct {
	Offset int // offset in bytes in the escaped path
}

func (e EscapeError) Error() string {
	return fmt.Sprintf("bad percent escape at offset %d of the path", e.Offset)
}

// Canonical appends the canonical form of an escaped path to dst. A path without '%' is already canonical. If it returns an
// EscapeError, it also returns dst with the part that was appended before the error.
func Canonical(dst []byte, escaped string) ([]byte, error) {
	dst, bad := semantics.AppendCanonical(dst, escaped)
	if bad >= 0 {
		return dst, EscapeError{Offset: bad}
	}
	return dst, nil
}

// AppendValue appends the value of a part of a canonical path: it replaces %2F by a slash and %25 by a percent sign.
func AppendValue(dst []byte, canonical string) []byte {
	for {
		i := strings.IndexByte(canonical, '%')
		if i < 0 || i+2 >= len(canonical) {
			return append(dst, canonical...)
		}
		dst = append(dst, canonical[:i]...)
		if canonical[i+1:i+3] == "2F" {
			dst = append(dst, '/')
		} else {
			dst = append(dst, '%')
		}
		canonical = canonical[i+3:]
	}
}

// Unescape returns the value of a part of a canonical path. If canonical has no escape, the result is canonical itself, and
// otherwise a new string.
func Unescape(canonical string) string {
	if strings.IndexByte(canonical, '%') < 0 {
		return canonical
	}
	return string(AppendValue(make([]byte, 0, len(canonical)), canonical))
}

// AppendEscaped appends a canonical path in the form for a Location header or a link. It escapes the bytes that RFC 3986 does not
// allow in a path. Slashes and the escapes of the canonical path are unchanged.
func AppendEscaped(dst []byte, canonical string) []byte {
	for i := 0; i < len(canonical); i++ {
		if c := canonical[i]; c == '/' || c == '%' || isPathByte(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

const upperHex = "0123456789ABCDEF"

// isPathByte reports whether c may be written without an escape in a path segment (RFC 3986 section 3.3, pchar).
func isPathByte(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("-._~!$&'()*+,;=:@", c) >= 0
}

// Clean removes "." and ".." segments and double slashes from a canonical path. dirty reports whether the path had any of them. If
// it had none, Clean returns path without allocating. No route matches a dirty path, so a caller needs Clean only for paths that
// were not found.
func Clean(path string) (cleaned string, dirty bool) {
	if !strings.HasPrefix(path, "/") || !isDirty(path[1:]) {
		return path, false
	}
	out := make([]byte, 0, len(path))
	for rest, more := path[1:], true; more; {
		var seg string
		seg, rest, more = strings.Cut(rest, "/")
		switch {
		case seg == "..":
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
			fallthrough
		case seg == "" || seg == ".":
			// A path that ends with "." or ".." denotes a directory.
			if !more {
				out = append(out, '/')
			}
		default:
			out = append(append(out, '/'), seg...)
		}
	}
	return string(out), true
}

// isDirty reports whether a path has an empty segment, "." or "..". rest is the path after a slash. An empty last segment is
// allowed, because it represents a trailing slash.
func isDirty(rest string) bool {
	for {
		if rest == "" {
			return false
		}
		if c := rest[0]; c == '/' || c == '.' && isDotSegment(rest) {
			return true
		}
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
}

// isDotSegment reports whether the first segment of s, which begins with a dot, is "." or "..".
func isDotSegment(s string) bool {
	if len(s) > 1 && s[1] == '.' {
		s = s[1:]
	}
	return len(s) == 1 || s[1] == '/'
}
