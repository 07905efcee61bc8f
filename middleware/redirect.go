package middleware

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// SecureOnly redirects requests in clear text to the same URL with TLS (308), see
// [dunlin.Request.Secure]. host is the target host, with a port other than 443. An empty host means
// the request's own; then [AllowedHosts] must have checked it before, since a client can send any.
// Add [SecureHeadersConfig.HSTS], so that browsers do not send clear text again.
func SecureOnly(host string) dunlin.Middleware {
	if host != "" {
		checkHost("SecureOnly", host)
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if r.Secure() {
				return next(r)
			}
			to := host
			if to == "" {
				if to = hostOnly(r.Host()); !isHostName(strings.ToLower(to)) && !isAddress(strings.Trim(to, "[]")) {
					return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the requested host is not valid"})
				}
			}
			return redirect(r, "https://"+to)
		}
	}
}

// CanonicalHost redirects requests for other hosts to the same path of host (308), for example from
// example.com to www.example.com. It keeps the scheme, and ignores the scheme's default port.
func CanonicalHost(host string) dunlin.Middleware {
	checkHost("CanonicalHost", host)
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if strings.EqualFold(r.Host(), host) {
				return next(r)
			}
			scheme, port := "http://", ":80"
			if r.Secure() {
				scheme, port = "https://", ":443"
			}
			// If a proxy adds the port to each request, a redirect to the host without it would
			// loop.
			if strings.EqualFold(strings.TrimSuffix(r.Host(), port), strings.TrimSuffix(host, port)) {
				return next(r)
			}
			return redirect(r, scheme+host)
		}
	}
}

func checkHost(who, host string) {
	if u, err := url.Parse("https://" + host); err != nil || u.Host != host || u.Hostname() == "" {
		panic(fmt.Sprintf("middleware: %s: %q is not a host, with or without a port", who, host))
	}
}

// redirect redirects to the path and query of the request at another origin.
func redirect(r *dunlin.Request, origin string) dunlin.Response {
	to := origin + escapePath(r.SentPath())
	if query := r.RawQuery(); query != "" {
		to += "?" + query
	}
	return dunlin.Redirect(to).Status(http.StatusPermanentRedirect)
}

// escapePath escapes a path of [dunlin.Request.Path], whose slashes and percent signs other than
// separators are escaped already. The result begins with one slash: two would name another host.
func escapePath(path string) string {
	escaped := strings.ReplaceAll((&url.URL{Path: path}).EscapedPath(), "%25", "%")
	return "/" + strings.TrimLeft(escaped, "/")
}

// RedirectTo returns the action that redirects to target (308). In target {name} stands for a
// parameter of the route, and {name...} for one with slashes:
//
//	app.Get("/users/{id:int}/profile", middleware.RedirectTo("/people/{id}"))
//	app.Get("/docs/{path...}", middleware.RedirectTo("https://docs.example.com/{path...}"))
//
// The query of the request is kept. Parameters are escaped for the path or the query, so that none
// can redirect to another host: target must name a host itself, or begin with a single slash. A
// request whose parameters give a path with dot segments, by escaped slashes, gets 404: it would
// leave the folder of target. [dunlin.App.Rewrite] serves another path without a redirect.
// RedirectTo panics when target is not valid.
func RedirectTo(target string) dunlin.Action {
	if strings.HasPrefix(target, "//") {
		panic(fmt.Sprintf("middleware: RedirectTo(%q): it begins with two slashes, which browsers parse as a host", target))
	}
	pieces := strings.Split(target, "{")
	names, inQuery := make([]string, len(pieces)), make([]bool, len(pieces))
	for i, piece := range pieces[1:] {
		name, rest, ok := strings.Cut(piece, "}")
		if !ok || name == "" {
			panic(fmt.Sprintf("middleware: RedirectTo(%q): a brace is not closed, or empty", target))
		}
		names[i+1], pieces[i+1] = name, rest
		before := strings.Join(pieces[:i+1], "")
		inQuery[i+1] = strings.Contains(before, "?") && !strings.Contains(before, "#")
	}
	if u, err := url.Parse(strings.Join(pieces, "")); err != nil || u.Host == "" && !strings.HasPrefix(target, "/") || u.Host != "" && len(pieces) > 1 && !strings.HasPrefix(pieces[0], u.Scheme+"://"+u.Host+"/") {
		panic(fmt.Sprintf("middleware: RedirectTo(%q): it must be a path, or a URL whose host has no parameters", target))
	}
	if hasDotSegment(strings.Join(pieces, "x")) {
		panic(fmt.Sprintf("middleware: RedirectTo(%q): its path has a dot segment", target))
	}
	return func(r *dunlin.Request) dunlin.Response {
		var to strings.Builder
		to.WriteString(pieces[0])
		for i, name := range names[1:] {
			whole, ok := strings.CutSuffix(name, "...")
			if inQuery[i+1] {
				to.WriteString(url.QueryEscape(r.Param(whole)))
			} else if ok {
				to.WriteString((&url.URL{Path: r.Param(whole)}).EscapedPath())
			} else {
				to.WriteString(url.PathEscape(r.Param(name)))
			}
			to.WriteString(pieces[i+1])
		}
		location := to.String()
		if hasDotSegment(location) {
			return dunlin.NotFound()
		}
		if strings.HasPrefix(location, "//") {
			location = "/" + strings.TrimLeft(location, "/")
		}
		if query := r.RawQuery(); query != "" {
			end := strings.IndexByte(location, '#') // of target: a parameter's is escaped
			if end < 0 {
				end = len(location)
			}
			separator := "?"
			if strings.Contains(location[:end], "?") {
				separator = "&"
			}
			location = location[:end] + separator + query + location[end:]
		}
		return dunlin.Redirect(location).Status(http.StatusPermanentRedirect)
	}
}

// hasDotSegment reports whether the path of a URL has a segment that clients resolve (RFC 3986 section 5.2.4).
func hasDotSegment(location string) bool {
	if end := strings.IndexAny(location, "?#"); end >= 0 {
		location = location[:end]
	}
	for segment := range strings.SplitSeq(location, "/") {
		if strings.HasPrefix(segment, ".") || strings.HasPrefix(segment, "%") {
			switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
			case ".", "..":
				return true
			}
		}
	}
	return false
}

// MethodOverride returns an action for POST that runs other methods' actions. It is for clients
// that cannot send these methods, such as an HTML form, or behind a proxy that passes only GET and
// POST. X-HTTP-Method-Override names one of actions. Without the field, post runs. post may be nil.
//
//	app.Post("/users/{id}", middleware.MethodOverride(nil, map[string]dunlin.Action{"PUT": replace, "DELETE": remove}))
//
// Only the given actions can be reached, and only by POST, so a safe method never becomes an unsafe
// one. A method that is not in actions gets 405. MethodOverride panics for GET, HEAD, OPTIONS and
// for nil actions.
func MethodOverride(post dunlin.Action, actions map[string]dunlin.Action) dunlin.Action {
	var allow []string
	for method, act := range actions {
		switch {
		case act == nil:
			panic(fmt.Sprintf("middleware: MethodOverride: the action for %s is nil", method))
		case !isToken(method) || method != strings.ToUpper(method):
			panic(fmt.Sprintf("middleware: MethodOverride: %q is not a method in capital letters", method))
		case method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodPost:
			panic(fmt.Sprintf("middleware: MethodOverride: %s needs no override", method))
		}
		allow = append(allow, method)
	}
	slices.Sort(allow)
	allowed := strings.Join(append([]string{http.MethodPost}, allow...), ", ")
	return func(r *dunlin.Request) dunlin.Response {
		method := r.Header("X-HTTP-Method-Override")
		if method == "" && post != nil {
			return post(r)
		}
		if act := actions[strings.ToUpper(method)]; act != nil && r.Method() == http.MethodPost {
			return act(r)
		}
		return dunlin.Problem(&dunlin.ProblemDetails{
			Status: http.StatusMethodNotAllowed, Detail: "the path does not support the method in X-HTTP-Method-Override",
		}).Header("Allow", allowed)
	}
}
