//go:build linux

package engine

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AdvanceClock moves the engine's clock forward and has every loop look at it.
func (e *Engine) AdvanceClock(by time.Duration) {
	e.skew.Add(int64(by))
	e.broadcast(message{kind: msgResume})
}

// LookAtLine judges the line for a worker, as its timer does.
func (e *Engine) LookAtLine() { e.workers.checkLine() }

// Waits reports whether a goroutine waits for c's socket.
func (c *Conn) Waits() bool { return c.state.Load() == waiting }

const connSize = unsafe.Sizeof(Conn{})

// NoDelay reports whether output of c is sent without waiting for an acknowledgement of its peer.
func (c *Conn) NoDelay() bool {
	on, err := unix.GetsockoptInt(int(c.fd), unix.IPPROTO_TCP, unix.TCP_NODELAY)
	return err == nil && on == 1
}

// HandshakesBegun returns the number of running handshakes of clients without a session, and of clients with one.
func (e *Engine) HandshakesBegun() (whole, resume int) {
	s := &e.handshakes
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[handshakeWhole].begun, s.lines[handshakeResume].begun
}

// HandshakesRunning returns the number of handshakes that have a processor.
func (e *Engine) HandshakesRunning() int {
	s := &e.handshakes
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Probed reports whether the system probes c's peer while it is silent.
func (c *Conn) Probed() bool {
	on, err := unix.GetsockoptInt(int(c.fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	return err == nil && on == 1
}
