package stdhttp

import (
	"net"
	"syscall"
)

// tlsBuffers is the maximum number of body bytes, in a TLS record and in net/http's buffer, that were read from the
// system but not by the action.
const tlsBuffers = 32 << 10

// Lost reports whether the system knows that the client has disconnected while left bytes of its body are missing (-1 if
// unknown). It is used while the action waits for something else and the body is not read. A client that shut down its side
// after the body still waits for the answer.
func (x *wire) Lost(left int64) bool {
	c, _ := x.Req.Context().Value(connKey{}).(*timedConn)
	if c == nil {
		return false // on a foreign server
	}
	unread, done, lost := peerOf(c.Conn)
	return lost || done && x.Req.ProtoMajor == 1 && left >= 0 && int64(unread)+tlsBuffers < left
}

// control calls f with the descriptor of c, if there is one.
func control(c net.Conn, f func(fd int)) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := sc.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // a closed connection has none
	}
}
