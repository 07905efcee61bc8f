//go:build linux

package engine

import "unsafe"

// secure returns what belongs to TLS of a connection, nil if it is without.
//
// Soundness: genSecure is set by newConn alone, in a Conn that is the first field of a secureConn,
// so both begin at the same address and live as long as each other.
func (c *Conn) secure() *tlsState {
	if c.gen&genSecure == 0 {
		return nil
	}
	return &(*secureConn)(unsafe.Pointer(c)).tls
}
