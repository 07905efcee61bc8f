// Package router finds the route for a method, a host and a path. It stores values of any type, and can be used without an
// HTTP server. Lookups take no lock and do not allocate. Routes may be added during lookups.
//
// # Patterns
//
//	/users                       static
//	/users/{id}                  a parameter takes one segment, which is not empty, "." or ".."
//	/users/{id:int}              with a constraint
//	/posts/{slug:[a-z]+(-\d+)?}  with a regular expression, which must match the whole value
//	/v{major:int}.{minor:int}    several parameters and text in a segment
//	/files/{path...}             a catch-all takes the rest, which may be empty
//	/legacy, as a prefix route   the path itself and everything below it
//
// Text is written unescaped: /café, not /caf%C3%A9. %2F and %25 stand for an escaped slash and an escaped percent sign. A
// segment must not begin with : or *, which other routers use for parameters: %3A and %2A stand for these characters. In a
// segment with several parameters, each text is searched from right to left at its last occurrence: {file}.{ext} parses
// archive.tar.gz as "archive.tar" and "gz". Constraints are applied to unescaped values. A word after the colon names a
// constraint; anything else is a regular expression.
//
// The constraints int and uint (of 64 bits), uuid, ipv4, ipv6, hex, alpha, alnum, slug (a-z and 0-9, in words joined by
// hyphens), date (YYYY-MM-DD) and bool (true, false) are built in. Router.Constraint and Router.ConstraintFunc define others.
// Expressions are compiled to automata that need one table lookup for each byte. If the table would be too large, package
// regexp matches the expression, and the listing says so.
//
// # Precedence
//
// In each segment, static takes precedence over constrained, constrained over named, and named over catch-all, regardless of
// the order of registration. If the rest of the path or the method does not match after the more specific segment, the next
// one is tried. Two routes that match the same request with equal precedence cannot both be added: the error names both
// positions and a path.
//
// Hosts take precedence over paths: first routes for the exact host, then those for host patterns, then those for any host.
// If the routes of a matching host do not match the request, the next are tried. Port, case and a final dot of the host are
// ignored.
//
// # Methods
//
// A route has a set of methods, or "*" for all. GET includes HEAD unless a route for HEAD has the same pattern. If patterns
// match, but none of them for the method, the outcome is MethodNotAllowed, with the methods of all matching patterns. OPTIONS
// is always among them; the caller must answer it.
//
// # Versions
//
// A route with version v2 is chosen by a vendor media type in Accept, such as application/vnd.acme.v2+json. A request without
// a version, or one that also accepts other media types, gets the route without version, or, if there is none, the newest. If
// the request names only versions that do not exist, the outcome is NotAcceptable.
//
// # Paths
//
// Lookups need canonical paths (see Canonical), in which an escaped slash never splits a segment. Paths with empty, "." or
// ".." segments match nothing; Clean returns the clean path. The trailing slash is significant; OtherSlash reports whether
// the path would match with or without it.
package router
