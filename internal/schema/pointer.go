package schema

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on text from a client that is sent back to the client, in bytes.
const (
	longestName    = 100        // maximum length of a name
	longestPointer = 1<<10 - 16 // maximum length of a pointer before cutMark is appended
)

// cutMark replaces the part of a text that is cut off.
const cutMark = "…"

// pointer formats c.path according to RFC 6901 section 6, as RFC 9457 requires.
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

// appendStep appends a name to a pointer. The name is as in the body, with its escapes. Most names need no escape in a pointer and
// are appended unchanged.
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

// shortName returns a name with its escapes decoded. It truncates a long name and does not read the rest of that name.
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

// EscapePointer escapes one step of a JSON pointer for a URI fragment.
func EscapePointer(name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return (&url.URL{Fragment: name}).EscapedFragment()
}

// AppendStep appends a step to a pointer. The step is a name from a client, and is truncated if it is long. If the pointer would be
// too long, AppendStep ends it with "…" and returns false.
func AppendStep(pointer []byte, name string) ([]byte, bool) {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "") + cutMark
	}
	return AppendEscaped(pointer, "/"+EscapePointer(name))
}

// AppendEscaped is AppendStep for a step that begins with a slash and is already escaped.
func AppendEscaped(pointer []byte, step string) ([]byte, bool) {
	before := len(pointer)
	pointer = append(pointer, step...)
	if len(pointer) > longestPointer {
		return append(append(pointer[:before], '/'), escapedMark...), false
	}
	return pointer, true
}
