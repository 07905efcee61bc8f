// Package httpcache implements the rules of RFC 9111 for a shared cache: how to read the directives of Cache-Control,
// whether a response may be stored, how long it is fresh, and when it may be sent although it is stale. The package
// stores nothing and does no I/O.
//
//	directives.go  Cache-Control (section 5.2)
//	targeted.go    fields for specific caches (RFC 9213)
//	policy.go      what may be stored and sent (sections 3 and 4)
//	vary.go        which request fields select a response (section 4.1)
package httpcache
