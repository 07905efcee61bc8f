package middleware

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// ContentTypes lets a request with a body pass only if the body has one of the given media types.
// It answers others with 415 and the types in Accept (RFC 9110 section 15.5.16), before the body is
// read. A body without a Content-Type, or with several, is refused, too. "text/*" matches every
// subtype of text, and "*+json" every type with the suffix +json. Parameters are ignored, but a charset
// must be UTF-8 or US-ASCII. If only application/json is allowed, HTML forms of other origins cannot
// send JSON. ContentTypes panics for an invalid media type.
func ContentTypes(types ...string) dunlin.Middleware {
	if len(types) == 0 {
		panic("middleware: ContentTypes: no media types: all bodies would be refused")
	}
	ranges := slices.Clone(types)
	for i, t := range types {
		if strings.HasPrefix(t, "*+") && t != "*+" {
			ranges[i] = "application/" + t // Accept has no suffix ranges, and most types with a suffix are application types
		}
		if !isMediaType(ranges[i]) {
			panic(fmt.Sprintf("middleware: ContentTypes: %q is not a media type", t))
		}
	}
	accept := dunlin.NewHeaderBlock("Accept", strings.Join(ranges, ", "))
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if r.ContentLength() == 0 {
				return next(r)
			}
			contentType := r.Header("Content-Type")
			why := wrongType(contentType, types)
			if why == "" && r.HeaderList("Content-Type") != contentType { // an upstream may use another of several lines
				why = "the body has more than one Content-Type"
			}
			if why != "" {
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusUnsupportedMediaType, Detail: why}).With(accept)
			}
			return next(r)
		}
	}
}

// isMediaType reports whether s is type/subtype (RFC 9110 section 8.3.1).
func isMediaType(s string) bool {
	top, sub, ok := strings.Cut(s, "/")
	return ok && isToken(top) && isToken(sub)
}

// wrongType returns the reason to refuse a Content-Type, or "".
func wrongType(contentType string, types []string) string {
	mediaType, params, _ := strings.Cut(contentType, ";")
	mediaType = strings.TrimSpace(mediaType)
	if mediaType == "" {
		return "the body has no Content-Type"
	}
	if !isMediaType(mediaType) {
		return "the Content-Type of the body is malformed"
	}
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "charset") {
			value = strings.Trim(strings.TrimSpace(value), `"`)
			if !strings.EqualFold(value, "utf-8") && !strings.EqualFold(value, "utf8") && !strings.EqualFold(value, "us-ascii") {
				return "the charset of the body is not UTF-8"
			}
		}
	}
	for _, want := range types {
		if matches(mediaType, want) {
			return ""
		}
	}
	return "this media type is not supported here"
}
