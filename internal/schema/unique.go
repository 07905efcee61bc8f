package schema

import (
	"slices"
	"strconv"
)

// appendCanonical appends a well-formed value so that equal values of JSON Schema's
// data model, and only they, become equal bytes: members in order, numbers and strings
// in one spelling. It returns the offset behind the value.
func appendCanonical(dst, b []byte, i int) ([]byte, int) {
	i = skipSpace(b, i)
	switch c := b[i]; {
	case c == '"':
		end, _, _ := scanString(b, i)
		return appendText(dst, b[i+1:end-1]), end
	case c == '-' || isDigit(c):
		end, _ := scanNumber(b, i)
		d := parseDecimal(b[i:end])
		return d.appendCanonical(dst), end
	case c == '[':
		dst = append(dst, '[')
		for i = skipSpace(b, i+1); b[i] != ']'; {
			dst, i = appendCanonical(dst, b, i)
			dst = append(dst, ',')
			if i = skipSpace(b, i); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
		return append(dst, ']'), i + 1
	case c == '{':
		members := map[string][]byte{} // of two by one name the last counts
		for i = skipSpace(b, i+1); b[i] != '}'; {
			end, _, _ := scanString(b, i)
			name := string(appendText(nil, b[i+1:end-1]))
			i = skipSpace(b, end) + 1
			members[name], i = appendCanonical(nil, b, i)
			if i = skipSpace(b, i); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
		names := make([]string, 0, len(members))
		for name := range members {
			names = append(names, name)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for _, name := range names {
			dst = append(append(append(append(dst, name...), ':'), members[name]...), ',')
		}
		return append(dst, '}'), i + 1
	}
	start := i
	for i < len(b) && 'a' <= b[i] && b[i] <= 'z' {
		i++
	}
	return append(dst, b[start:i]...), i
}

// appendText appends a string with its length, so that nothing in it is mistaken for
// what is around it.
func appendText(dst, content []byte) []byte {
	text := appendUnescaped(nil, content)
	dst = strconv.AppendInt(append(dst, '"'), int64(len(text)), 10)
	return append(append(dst, ':'), text...)
}

// firstRepeated returns the index of the first element of a well-formed array that
// equals an earlier one.
func firstRepeated(array []byte) (index int, found bool) {
	seen := map[string]struct{}{}
	var element []byte
	for i, n := skipSpace(array, 1), 0; array[i] != ']'; n++ {
		element, i = appendCanonical(element[:0], array, i)
		if _, twice := seen[string(element)]; twice {
			return n, true
		}
		seen[string(element)] = struct{}{}
		if i = skipSpace(array, i); array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return 0, false
}

// canonical is the canonical form of a well-formed value.
func canonical(text []byte) string {
	b, _ := appendCanonical(nil, text, 0)
	return string(b)
}
