package httpcache

import (
	"net/textproto"
	"slices"
	"strings"
)

// MostVary is how many request fields may choose a response: one that names more is not stored.
const MostVary = 8

// ParseVary returns the names of a Vary field's lines in canonical spelling, sorted, each once; always is true when it says "*", or
// more than can be regarded.
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
