package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// longestName bounds how much of a name that the client chose is repeated to it, in bytes.
const longestName = 100

// pointer renders path by RFC 6901 section 6, as RFC 9457 wants it.
func (c *checker) pointer() string {
	if len(c.path) == 0 {
		return "#"
	}
	var room [128]byte
	b := append(room[:0], '#')
	for i := range c.path {
		s := &c.path[i]
		b = append(b, '/')
		if s.array {
			b = strconv.AppendInt(b, int64(s.index), 10)
			continue
		}
		name := s.name
		if strings.IndexByte(string(name), '\\') >= 0 {
			name = appendUnescaped(nil, name)
		}
		if len(name) > longestName {
			name = append(name[:longestName:longestName], "…"...)
		}
		b = appendStep(b, name)
	}
	return string(b)
}

// appendStep appends a name; most need no escape.
func appendStep(b, name []byte) []byte {
	for _, c := range name {
		if !isAlnum(c) && c != '_' && c != '-' {
			return append(b, EscapePointer(strings.ToValidUTF8(string(name), "\uFFFD"))...)
		}
	}
	return append(b, name...)
}

// EscapePointer escapes one step of a JSON pointer that is the fragment of a URI.
func EscapePointer(name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return (&url.URL{Fragment: name}).EscapedFragment()
}
