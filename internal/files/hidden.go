package files

import "strings"

// Hidden reports whether an element of a name begins with a dot. The name "." and the element .well-known (RFC
// 8615) are not hidden.
func Hidden(name string) bool {
	if name == "." {
		return false
	}
	for element := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(element, ".") && element != ".well-known" {
			return true
		}
	}
	return false
}
