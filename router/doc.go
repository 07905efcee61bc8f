// Package router finds the route for a method, a host and a path. It is generic in what it stores,
// knows nothing of HTTP servers and can be used alone. Lookups take no lock and do not allocate;
// routes may be added while lookups run.
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
// Text is written plainly: /café, not /caf%C3%A9. %2F and %25 stand for an escaped slash and an
// escaped percent sign. A segment may not begin with : or *, which other routers take for parameters:
// %3A and %2A stand for the characters themselves. In a segment with several parameters each text is found at its last
// occurrence, from right to left: {file}.{ext} reads archive.tar.gz as "archive.tar" and "gz".
// Constraints see values unescaped. A word after the colon names a constraint; anything else is a
// regular expression.
//
// The constraints int and uint (that fit 64 bits), uuid, ipv4, ipv6, hex, alpha, alnum, slug (a-z and
// 0-9, in words joined by hyphens), date (YYYY-MM-DD) and bool (true, false) are built in;
// Router.Constraint and Router.ConstraintFunc define others. Expressions become automata that take a
// table look-up a byte; one that would need too large a table is matched by package regexp, and the
// listing says so.
//
// # Precedence
//
// Segment by segment, static comes before constrained, constrained before named and that before
// catch-all, whatever the order of registration. When the rest of the path does not match behind the
// better segment, or not for the method, the next is tried. Two routes that one request would match at
// equal precedence cannot both be added: the error names both places and a path.
//
// Hosts come before paths: routes for the exact host, then those for host patterns, then those for any.
// A host that is matched but has no route for the request falls through to the next. The port, the
// case and a final dot of the host do not matter.
//
// # Methods
//
// A route has a set of methods or "*" for any. GET includes HEAD unless a route for HEAD has the same
// pattern. If patterns match and none of them for the method, the outcome is MethodNotAllowed, with
// the methods of all of them. OPTIONS counts as allowed everywhere: answering it is left to the
// caller.
//
// # Versions
//
// A route with version v2 is chosen by a vendor media type in Accept, as in
// application/vnd.acme.v2+json. A request that names no version, or accepts other media types too,
// gets the route without version, or, if there is none, the newest. If only versions are named that do
// not exist, the outcome is NotAcceptable.
//
// # Paths
//
// Matching works on canonical paths (see Canonical), in which an escaped slash never splits a segment.
// Paths with empty, "." or ".." segments match nothing; Clean tells the clean path. The trailing slash
// matters; OtherSlash tells whether the path would match the other way.
package router
