package typed

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// detectable lists media types for which http.DetectContentType recognizes every well-formed file.
var detectable = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "application/pdf"}

// contentTypes parses the tag contentType. The tag is a list of media types and ranges, such as "image/*, application/pdf".
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

// anyCovers reports whether one of the allowed types equals the media type kind, or is a range that contains it.
func anyCovers(allowed []string, kind string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool { return covers(a, kind) })
}

// acceptsContent reports whether a file with this content may have the media type that the client declared. The caller has checked
// that allowed covers the declared type. In general, allowed must also cover the type that is detected in the content. A type that
// cannot be detected, such as text/csv, is accepted if allowed contains its name and the content is not detected as a type that
// browsers render.
func acceptsContent(allowed []string, declared string, content []byte) bool {
	detected := mediaType(http.DetectContentType(content))
	if anyCovers(allowed, detected) {
		return true
	}
	named := slices.Contains(allowed, declared) && !slices.Contains(detectable, declared)
	return named && detected != "text/html" && !slices.Contains(detectable, detected)
}
