// Package router finds the route for a method, a host and a path. It stores values of any type, and does not depend on an
// HTTP server. Lookups take no lock and do not allocate. Routes may be added while lookups run.
//
// # Patterns
//
//	/users                       static
//	/users/{id}                  a parameter matches one segment that is not empty, "." or ".."
//	/users/{id:int}              with a constraint
//	/posts/{slug:[a-z]+(-\d+)?}  with a regular expression, which must match the whole value
//	/v{major:int}.{minor:int}    several parameters and text in a segment
//	/files/{path...}             a catch-all matches the rest of the path, which may be empty
//	/legacy, as a prefix route   the path itself and everything below it
//
// Text in patterns is not percent-encoded: /café, not /caf%C3%A9. There are four exceptions. %2F and %25 represent an escaped
// slash and an escaped percent sign. %3A and %2A represent : and * at the beginning of a segment, where these characters are
// not allowed because other routers use them for parameters.
//
// A segment with several parameters is parsed from right to left, and each text is found at its last occurrence: {file}.{ext}
// parses archive.tar.gz as "archive.tar" and "gz". Constraints apply to unescaped values. A word after the colon is the name
// of a constraint. Anything else after the colon is a regular expression.
//
// The built-in constraints are int and uint (of 64 bits), uuid, ipv4, ipv6, hex, alpha, alnum, slug (words of a-z and 0-9,
// joined by hyphens), date (YYYY-MM-DD) and bool (true, false). Router.Constraint and Router.ConstraintFunc define other
// constraints. Expressions are compiled to automata that need one table lookup for each byte. If the table of an automaton
// would be too large, package regexp matches the expression, and Info.Constraints marks it.
//
// # Precedence
//
// In each segment, static text takes precedence over a constrained parameter, a constrained parameter over a parameter
// without constraint, and a parameter without constraint over a catch-all. The order of registration has no effect. If the
// rest of the path or the method does not match after the more specific segment, the lookup tries the less specific segment.
// Two routes that match the same request with equal precedence cannot both be added. The error names the positions of both
// registrations and a path that both match. If a constraint is a function, or is matched by package regexp, such a conflict
// may remain undetected.
//
// Hosts take precedence over paths: routes for the exact host are tried first, then routes for host patterns, then routes for
// any host. If no route of a matching host matches the request, the next matching host is tried. The port, the case and a
// final dot of the host are ignored.
//
// # Methods
//
// A route has a set of methods, or "*" for all methods. A route for GET also answers HEAD, unless a route for HEAD has the
// same pattern. If patterns match the path, but none of their routes has the method, the outcome is MethodNotAllowed, with
// the methods of all matching patterns. These always include OPTIONS, which the caller must answer.
//
// # Versions
//
// A route with version v2 is selected by a vendor media type in Accept, such as application/vnd.acme.v2+json. If the header
// names no version, or if none of the named versions exists but the header also accepts other media types, the request gets
// the route without a version. If no such route exists, it gets the newest version. If a request accepts only versions that
// do not exist, the outcome is NotAcceptable.
//
// # Paths
//
// Lookups need canonical paths (see Canonical). In a canonical path an escaped slash does not split a segment. A path with an
// empty segment, "." or ".." matches nothing; Clean returns the path without such segments. A trailing slash is significant.
// OtherSlash reports whether the path would match with a trailing slash added or removed.
package router
