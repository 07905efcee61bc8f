// Package clientaddr finds the address of a client behind proxies, in what the trusted ones
// of them have written into a header: X-Forwarded-For, Forwarded (RFC 7239) or one like the
// first. Each proxy adds the address that it was asked from at the end of the list, so the
// list is read from there, and no further than the first address that is not a trusted
// proxy's: what stands before it, anybody can have written.
//
//	trust.go   who is trusted           list.go  X-Forwarded-For
//	source.go  finding the client       forwarded.go  RFC 7239
//	addrport.go the other end of a connection
package clientaddr
