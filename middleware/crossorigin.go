package middleware

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// CrossOrigin protects against cross-site request forgery (CSRF): it answers 403 to requests that a
// browser sends for a page of another origin. It needs no token and no cookie. It checks
// Sec-Fetch-Site and Origin, which pages cannot set, by the rules of [http.CrossOriginProtection].
// GET, HEAD and OPTIONS pass, so their actions must not change anything. Requests of the same origin
// and of trusted origins pass. Requests with neither header pass, because they come from clients other
// than browsers. Browsers older than 2020 send only Origin, which is then checked.
//
// trusted are origins and patterns as in [CORSConfig].Origins, except "*", which would allow every
// page. A page of a trusted origin can act for its visitor. CrossOrigin panics for a text that is not
// an origin.
func CrossOrigin(trusted ...string) dunlin.Middleware {
	allowed := trustedOrigins{exact: make(map[string]bool)}
	for _, text := range trusted {
		if text == "*" {
			panic(`middleware: CrossOrigin: "*" allows every page to act for its visitors: list the trusted origins`)
		}
		if p := parseOrigin("CrossOrigin", text); p.suffix != "" || p.anyPort {
			allowed.like = append(allowed.like, p)
		} else {
			allowed.exact[text] = true
		}
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			switch r.Method() {
			case http.MethodGet, http.MethodHead, http.MethodOptions:
				return next(r)
			}
			if why := crossOrigin(r, &allowed); why != "" {
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusForbidden, Detail: why})
			}
			return next(r)
		}
	}
}

// trustedOrigins are the origins whose pages may send requests.
type trustedOrigins struct {
	exact map[string]bool
	like  []originPattern
}

func (t *trustedOrigins) has(origin string) bool {
	if origin == "" {
		return false
	}
	return t.exact[origin] || slices.ContainsFunc(t.like, func(p originPattern) bool { return p.matches(origin) })
}

// crossOrigin returns the reason to refuse a request, or "".
func crossOrigin(r *dunlin.Request, trusted *trustedOrigins) string {
	site, origin := r.Header("Sec-Fetch-Site"), r.Header("Origin")
	switch {
	case site == "same-origin" || site == "none" || trusted.has(origin):
		return ""
	case site != "":
		return "the request comes from a page of another origin"
	case origin == "":
		return "" // no browser, or a browser that sends neither header
	}
	if _, host, ok := strings.Cut(origin, "://"); ok && host == r.Host() {
		return "" // the scheme is not compared, because a proxy may hide it; HSTS prevents forged pages in clear text
	}
	return "the Origin header names another origin"
}
