package schema

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on what is repeated to a client of what it has sent, in bytes.
const (
	longestName    = 100        // of one name
	longestPointer = 1<<10 - 16 // of a pointer, before the mark of what is cut off
)

// cutMark stands for what is cut off.
const cutMark = "…"

// pointer renders path by RFC 6901 section 6, as RFC 9457 wants it.
func (c *checker) pointer() string {
	if len(c.path) == 0 {
		return "#"
	}
	var room [128]byte
	b := append(room[:0], '#')
	for i := range c.path {
		before := len(b)
		s := &c.path[i]
		b = append(b, '/')
		if s.array {
			b = strconv.AppendInt(b, int64(s.index), 10)
		} else {
			b = appendStep(b, s.name)
		}
		if len(b) > longestPointer {
			return string(append(b[:before], "/"+escapedMark...))
		}
	}
	return string(b)
}

var escapedMark = EscapePointer(cutMark)

// appendStep appends a name as it stands in the body; most need no escape.
func appendStep(b, name []byte) []byte {
	if len(name) <= longestName {
		plain := true
		for _, c := range name {
			plain = plain && (isAlnum(c) || c == '_' || c == '-')
		}
		if plain {
			return append(b, name...)
		}
	}
	return append(b, EscapePointer(strings.ToValidUTF8(shortName(name), "\uFFFD"))...)
}

// shortName returns a name without its escapes, the beginning of a long one. It is cut before
// it is unescaped: no more of it is read than is returned.
func shortName(name []byte) string {
	var room [2 * longestName]byte
	text := room[:0]
	for i := 0; i < len(name); {
		end := i + 1
		if name[i] == '\\' {
			end, _, _ = scanEscape(name, i)
			text = appendUnescaped(text, name[i:end])
		} else {
			for end < len(name) && !utf8.RuneStart(name[end]) && end-i < utf8.UTFMax {
				end++
			}
			text = append(text, name[i:end]...)
		}
		if i = end; len(text) >= longestName && i < len(name) {
			return string(text) + cutMark
		}
	}
	return string(text)
}

// EscapePointer escapes one step of a JSON pointer that is the fragment of a URI.
func EscapePointer(name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return (&url.URL{Fragment: name}).EscapedFragment()
}

// AppendStep appends a step of a pointer, a name that a client has chosen; a long one is cut.
// It returns false when the pointer would be too long, and has been ended.
func AppendStep(pointer []byte, name string) ([]byte, bool) {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "") + cutMark
	}
	return AppendEscaped(pointer, "/"+EscapePointer(name))
}

// AppendEscaped is AppendStep for a step that is escaped and has its slash.
func AppendEscaped(pointer []byte, step string) ([]byte, bool) {
	before := len(pointer)
	pointer = append(pointer, step...)
	if len(pointer) > longestPointer {
		return append(append(pointer[:before], '/'), escapedMark...), false
	}
	return pointer, true
}
