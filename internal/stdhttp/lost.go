package stdhttp

import (
	"net"
	"syscall"
)

// tlsBuffers is the maximum number of bytes of a body that were read from the system and not by the action. They are in a
// TLS record and in net/http's buffer.
const tlsBuffers = 32 << 10

// Lost reports whether the system knows that the client has disconnected while the server still needs left bytes of the
// body. left is -1 if the length is unknown. Lost is used while the action waits for memory and does not read the body. A
// client that has closed its side after the whole body still waits for the answer, and is not lost.
func (x *wire) Lost(left int64) bool {
	c, _ := x.Req.Context().Value(connKey{}).(*timedConn)
	if c == nil {
		return false // the connection does not belong to a Server
	}
	unread, done, lost := peerOf(c.Conn)
	return lost || done && x.Req.ProtoMajor == 1 && left >= 0 && int64(unread)+tlsBuffers < left
}

// control calls f with the descriptor of c, if c has one.
func control(c net.Conn, f func(fd int)) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := sc.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // a closed connection has no descriptor
	}
}
