// Package semantics has the parts of HTTP that all its versions share (RFC 9110): methods, the bytes of field lines, and
// the canonical form of paths.
package semantics
