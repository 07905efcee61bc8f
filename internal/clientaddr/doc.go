// Package clientaddr finds the address of a client behind trusted proxies in a header that the proxies write: X-Forwarded-For,
// Forwarded (RFC 7239), or another header in the format of X-Forwarded-For. Each proxy appends the address of its own peer.
// Therefore the list is read from the end, up to the first address that is not a trusted proxy. The client could have forged
// everything before that address.
//
//	trust.go   the trusted proxies      list.go  X-Forwarded-For
//	source.go  finding the client       forwarded.go  RFC 7239
//	addrport.go addresses of peers
package clientaddr
