package middleware

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// CrossOrigin refuses, with 403, what a page of another origin has a browser send: that is how
// requests are forged in the name of a visitor (CSRF). It needs no token and no cookie, but
// goes by Sec-Fetch-Site and Origin, which pages cannot set, by the rules of
// [http.CrossOriginProtection]: GET, HEAD and OPTIONS pass, and so must not change anything; so
// do requests of the same origin, of those given, and of clients that are no browsers, which send neither
// header. Browsers older than 2020 that send Origin are known by that.
//
// It panics when a trusted origin is none.
func CrossOrigin(trusted ...string) dunlin.Middleware {
	allowed := make(map[string]bool)
	for _, text := range trusted {
		if p := parseOrigin("CrossOrigin", text); p.suffix != "" || p.anyPort {
			panic(fmt.Sprintf("middleware: CrossOrigin: %q: patterns of origins are not taken here", text))
		}
		allowed[text] = true
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			switch r.Method() {
			case http.MethodGet, http.MethodHead, http.MethodOptions:
				return next(r)
			}
			if why := crossOrigin(r, allowed); why != "" {
				return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusForbidden, Detail: why})
			}
			return next(r)
		}
	}
}

// crossOrigin returns why a request is refused, "" if it is not.
func crossOrigin(r *dunlin.Request, trusted map[string]bool) string {
	site, origin := r.Header("Sec-Fetch-Site"), r.Header("Origin")
	switch {
	case site == "same-origin" || site == "none" || trusted[origin]:
		return ""
	case site != "":
		return "the request comes from a page of another origin"
	case origin == "":
		return "" // no browser, or one so old that it says nothing
	}
	if _, host, ok := strings.Cut(origin, "://"); ok && host == r.Host() {
		return "" // the scheme is not known behind a proxy; HSTS keeps clear text from being forged
	}
	return "the request comes from a page of another origin, by its Origin"
}
