// Package httpcache implements the rules of RFC 9111 for a shared cache: the directives of Cache-Control, whether a
// response may be stored, how long it is fresh, and when it may be sent stale. It stores nothing, does no I/O and has
// no request type of its own.
//
//	directives.go  Cache-Control (section 5.2)
//	targeted.go    fields for specific caches (RFC 9213)
//	policy.go      what may be stored and sent (sections 3 and 4)
//	vary.go        which request fields choose a response (section 4.1)
package httpcache
