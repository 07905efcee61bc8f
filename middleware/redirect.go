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
// [dunlin.Request.Secure]. host is the target host, with a port if it is not 443. If host is empty, the
// target host is that of the request. Then [AllowedHosts] must have checked it before, since a client
// can send any host. Set [SecureHeadersConfig].HSTS, so that browsers do not send clear text again.
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
			// If a proxy adds the port to the host of each request, a redirect to the host without the
			// port would repeat forever.
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

// escapePath escapes a path of [dunlin.Request.Path], in which percent signs, and slashes that are not
// separators, are already escaped. The result begins with a single slash, because two slashes begin a
// URL with a host.
func escapePath(path string) string {
	escaped := strings.ReplaceAll((&url.URL{Path: path}).EscapedPath(), "%25", "%")
	return "/" + strings.TrimLeft(escaped, "/")
}

// RedirectTo returns the action that redirects to target (308). In target, {name} is replaced by a
// parameter of the route, and {name...} by a parameter with slashes:
//
//	app.Get("/users/{id:int}/profile", middleware.RedirectTo("/people/{id}"))
//	app.Get("/docs/{path...}", middleware.RedirectTo("https://docs.example.com/{path...}"))
//
// The query of the request is kept. Parameters are escaped for the path or the query, so that no
// parameter can redirect to another host. target must contain the whole host, or begin with a single
// slash. If the parameters make a path with dot segments, also between escaped slashes or backslashes or
// before a semicolon, the answer is 404, because the path would leave the folder of target.
// [dunlin.App.Rewrite] serves another path without a redirect. RedirectTo panics for an invalid target.
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
			end := strings.IndexByte(location, '#') // always that of target, because parameters are escaped
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

// separators replaces what some servers take for a slash.
var separators = strings.NewReplacer("%2F", "/", "%2f", "/", `\`, "/", "%5C", "/", "%5c", "/")

// hasDotSegment reports whether the path of a URL has a segment that clients resolve (RFC 3986 section 5.2.4), or that
// servers resolve which decode the path first, or ignore the part of a segment after a semicolon.
func hasDotSegment(location string) bool {
	if end := strings.IndexAny(location, "?#"); end >= 0 {
		location = location[:end]
	}
	for segment := range strings.SplitSeq(separators.Replace(location), "/") {
		segment, _, _ = strings.Cut(segment, ";")
		if strings.HasPrefix(segment, ".") || strings.HasPrefix(segment, "%") {
			switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
			case ".", "..":
				return true
			}
		}
	}
	return false
}

// MethodOverride returns an action for POST that runs the actions of other methods. It is for clients
// that cannot send these methods, such as an HTML form, or a client behind a proxy that passes only GET
// and POST. X-HTTP-Method-Override names the method, a key of actions. Without the field, post runs.
// post may be nil.
//
//	app.Post("/users/{id}", middleware.MethodOverride(nil, map[string]dunlin.Action{"PUT": replace, "DELETE": remove}))
//
// Only the given actions can be called, and only by POST, so a safe method never becomes an unsafe
// method. A method that is not in actions is answered with 405. MethodOverride panics for GET, HEAD,
// OPTIONS and POST in actions, and for nil actions.
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
