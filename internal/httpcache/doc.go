// Package httpcache knows the rules of RFC 9111 for a shared cache: what the directives of
// Cache-Control say, what may be stored, for how long it is fresh and in which cases it may be
// sent stale. It keeps nothing, does no I/O and knows no requests.
//
//	directives.go  Cache-Control (section 5.2)
//	targeted.go    fields for some caches alone (RFC 9213)
//	policy.go      what may be stored and sent (sections 3 and 4)
//	vary.go        which request fields choose a response (section 4.1)
package httpcache
