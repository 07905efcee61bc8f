package typed

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// detectable are the types that http.DetectContentType finds in every well-formed file of theirs.
var detectable = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "application/pdf"}

// contentTypes reads the tag contentType: media types and ranges of them, "image/*, application/pdf".
func contentTypes(tag string) ([]string, error) {
	list := splitComma(tag)
	for i, name := range list {
		list[i] = mediaType(name)
	}
	if len(list) == 0 || slices.ContainsFunc(list, func(name string) bool { return !strings.Contains(name, "/") }) {
		return nil, errors.New("it must list media types such as image/png, or ranges such as image/*")
	}
	return list, nil
}

// anyCovers reports whether one of the types that are allowed is a media type or has it in its range.
func anyCovers(allowed []string, kind string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool { return covers(a, kind) })
}

// takesContent reports whether content of a declared type, which is allowed, may be of that type: the
// detected type must be allowed, too. For a type that is allowed by its name and that cannot be
// detected, such as text/csv, the declared type counts, unless the content is detected as something
// that browsers show.
func takesContent(allowed []string, declared string, content []byte) bool {
	detected := mediaType(http.DetectContentType(content))
	if anyCovers(allowed, detected) {
		return true
	}
	named := slices.Contains(allowed, declared) && !slices.Contains(detectable, declared)
	return named && detected != "text/html" && !slices.Contains(detectable, detected)
}
