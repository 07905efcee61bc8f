//go:build linux

package engine

import "unsafe"

// secure returns the TLS state of a connection, or nil without TLS.
//
// Soundness: only newConn sets genSecure, in a Conn that is the first field of a secureConn, so both begin at the same
// address and have the same lifetime.
func (c *Conn) secure() *tlsState {
	if c.gen&genSecure == 0 {
		return nil
	}
	return &(*secureConn)(unsafe.Pointer(c)).tls
}
