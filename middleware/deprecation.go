package middleware

import (
	"net/http"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// DeprecatedConfig has the settings of [Deprecated]. Since or Sunset must be set.
type DeprecatedConfig struct {
	// Since is the time of the deprecation, in the past or future. After that time the route still
	// works, but new clients should not use it. The zero time omits the header Deprecation.
	Since time.Time

	// Sunset is the time of the expected removal. The zero time omits the header Sunset.
	Sunset time.Time

	// Link is the URL of a page for people that describes the replacement. Default: none.
	Link string
}

// Deprecated announces that a route or a group will be removed: it adds the headers Deprecation (RFC
// 9745), Sunset (RFC 8594) and Link to each response. It panics for a notice with neither Since nor
// Sunset, and for a Sunset before Since, which RFC 9745 section 4 forbids.
func Deprecated(notice DeprecatedConfig) dunlin.Middleware {
	if notice.Since.IsZero() && notice.Sunset.IsZero() {
		panic("middleware: Deprecated: neither Since nor Sunset is set")
	}
	if !notice.Since.IsZero() && !notice.Sunset.IsZero() && notice.Sunset.Before(notice.Since) {
		panic("middleware: Deprecated: Sunset is before Since")
	}
	var pairs []string
	var links []string
	if !notice.Since.IsZero() {
		pairs = append(pairs, "Deprecation", "@"+strconv.FormatInt(notice.Since.Unix(), 10))
		links = append(links, "deprecation")
	}
	if !notice.Sunset.IsZero() {
		pairs = append(pairs, "Sunset", notice.Sunset.UTC().Format(http.TimeFormat))
		links = append(links, "sunset")
	}
	block := dunlin.NewHeaderBlock(pairs...)
	link := ""
	if notice.Link != "" {
		for i, rel := range links {
			if i > 0 {
				link += ", "
			}
			link += "<" + notice.Link + `>; rel="` + rel + `"; type="text/html"`
		}
		dunlin.NewHeaderBlock("Link", link) // panics if the link is invalid
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := ext.DefaultHeaders(next(r), block)
			if link != "" {
				resp = resp.AddHeader("Link", link)
			}
			return resp
		}
	}
}
