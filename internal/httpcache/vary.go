package httpcache

import (
	"net/textproto"
	"slices"
	"strings"
)

// MostVary is the maximum number of field names in Vary. A response with more names must not be stored.
const MostVary = 8

// ParseVary returns the field names of all Vary lines in canonical spelling, sorted and without duplicates. always is
// true if a line contains "*", or if there are more than MostVary names.
func ParseVary(lines ...string) (names []string, always bool) {
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			switch name = strings.Trim(name, " \t"); name {
			case "":
			case "*":
				return nil, true
			default:
				names = append(names, textproto.CanonicalMIMEHeaderKey(name))
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, len(names) > MostVary
}

// SameSelection reports whether two values a and b of a request field select the same response. If the field is known
// to be a list, white space and letter case are ignored (section 4.1).
func SameSelection(name, a, b string) bool {
	if a == b {
		return true
	}
	switch name {
	case "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language":
		return !strings.Contains(a, `"`) && !strings.Contains(b, `"`) && sameBut(a, b)
	}
	return false
}

// sameBut reports whether two strings are equal without regard to white space and letter case.
func sameBut(a, b string) bool {
	for {
		a, b = strings.TrimLeft(a, " \t"), strings.TrimLeft(b, " \t")
		if a == "" || b == "" {
			return a == b
		}
		x, y := a[0], b[0]
		if 'A' <= x && x <= 'Z' {
			x += 'a' - 'A'
		}
		if 'A' <= y && y <= 'Z' {
			y += 'a' - 'A'
		}
		if x != y {
			return false
		}
		a, b = a[1:], b[1:]
	}
}
