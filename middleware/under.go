package middleware

import (
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// Under returns a policy that applies p only to the paths of a group: prefix itself and all paths
// below it. It applies to every response for these paths: of an action, the app's own 404 or 405,
// or a late 503:
//
//	api := app.Group("/api", middleware.CORS(cors))
//	app.Policy(middleware.Under("/api", middleware.SendCORS(cors)))
//
// The prefix has no parameters. A request without a readable path is below no prefix. A rewritten
// request counts with both paths. Under panics when prefix is not a path.
func Under(prefix string, p dunlin.Policy) dunlin.Policy {
	if p == nil {
		panic("middleware: Under: nil policy")
	}
	if !strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, "{}?#") {
		panic("middleware: Under: the prefix " + prefix + " is not a path without parameters")
	}
	prefix = strings.TrimRight(prefix, "/")
	return func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		if path := info.Path(); !isUnder(path, prefix) && !isUnder(info.SentPath(), prefix) || path == "" {
			return resp
		}
		return p(info, resp)
	}
}

// isUnder reports whether a path is prefix, which has no slash at its end, or is below it.
func isUnder(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}
