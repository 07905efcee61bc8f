package middleware

import (
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// Under returns the policy p for the paths of a group alone: prefix itself and what lies below it, whoever answers, an action, the app's own 404 or
// 405, or a late 503:
//
//	api := app.Group("/api", middleware.CORS(cors))
//	app.Policy(middleware.Under("/api", middleware.SendCORS(cors)))
//
// The prefix has no parameters. Requests of which no path could be read are below none; one whose path was
// rewritten is below both. Under panics when the prefix is no path.
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

// isUnder reports whether a path is prefix, which ends without a slash, or lies below it.
func isUnder(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}
