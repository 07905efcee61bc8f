package middleware

import (
	"net/http"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// DeprecationNotice says that something is going away.
type DeprecationNotice struct {
	// Since is when it was, or will be, deprecated: it still works, but should not be used for
	// what is new. The zero time leaves the header out.
	Since time.Time

	// Sunset is from when on it is expected to be gone. The zero time leaves the header out.
	Sunset time.Time

	// Link is the URL of a page for people that says what to use instead. Default: none.
	Link string
}

// Deprecated says with each response, by Deprecation (RFC 9745), Sunset (RFC 8594) and Link, that a
// route or a group is going away. It panics for a notice that says nothing, or whose sunset comes before its
// deprecation, which RFC 9745 section 4 forbids.
func Deprecated(notice DeprecationNotice) dunlin.Middleware {
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
		dunlin.NewHeaderBlock("Link", link) // panics, naming what is wrong
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r).DefaultHeaders(block)
			if link != "" {
				resp = resp.AddHeader("Link", link)
			}
			return resp
		}
	}
}
