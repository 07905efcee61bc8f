package stdhttp

import (
	"net"
	"syscall"
)

// tlsBuffers is what of a body, in bytes, may have been read from the system and not by the action:
// in a record of TLS, and in net/http's buffer.
const tlsBuffers = 32 << 10

// Lost reports whether the system says that the client has gone, of whose body so many bytes must
// come (-1: unknown): while the action waits for something else, nobody reads. A client that
// has finished sending behind its body waits for the answer.
func (x *wire) Lost(left int64) bool {
	c, _ := x.Req.Context().Value(connKey{}).(*timedConn)
	if c == nil {
		return false // on another's server
	}
	unread, done, lost := peerOf(c.Conn)
	return lost || done && x.Req.ProtoMajor == 1 && left >= 0 && int64(unread)+tlsBuffers < left
}

// control calls f with the descriptor of c, if it has one.
func control(c net.Conn, f func(fd int)) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := sc.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // one that is closed has none
	}
}
