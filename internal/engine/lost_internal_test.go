//go:build linux

package engine

import (
	"bytes"
	"math/rand/v2"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// After a peer has finished sending, all of its input can be peeked at, piece by piece, and can still be read.
func TestPeekAfterPeerFinished(t *testing.T) {
	c, peer := aheadConn(t, 3*aheadPiece)
	sent := make([]byte, 5*aheadPiece/2)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	if _, err := peer.Write(sent); err != nil {
		t.Fatal(err)
	}
	if !c.Ahead(func([]byte) bool { t.Error("more may come"); return false }) {
		t.Error("a peer that may send more is not known to have sent too little")
	}
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	awaitFinish(t, c)
	for range 2 { // peeking does not consume the input
		var seen []byte
		if c.Ahead(func(piece []byte) bool { seen = append(seen, piece...); return false }) {
			t.Error("enough was seen")
		}
		if !bytes.Equal(seen, sent) {
			t.Errorf("%d bytes were seen of %d", len(seen), len(sent))
		}
	}
	calls := 0
	if !c.Ahead(func([]byte) bool { calls++; return calls == 2 }) || calls != 2 {
		t.Errorf("%d pieces until it is enough", calls)
	}
}

// However much input the system holds for a peer, only a small, cheap amount is peeked at, and a bounded
// peek does not mean that the peer has sent too little.
func TestPeekIsBounded(t *testing.T) {
	const sent = 2 * aheadMost
	c, peer := aheadConn(t, 2*sent)
	if _, err := peer.Write(make([]byte, sent)); err != nil {
		t.Fatal(err)
	}
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	awaitFinish(t, c)
	seen := 0
	if !c.Ahead(func(piece []byte) bool { seen += len(piece); return false }) {
		t.Error("a peer of which not all is looked at is not known to have sent too little")
	}
	if seen < aheadMost || seen > aheadMost+aheadPiece {
		t.Errorf("%d bytes were looked at of %d", seen, sent)
	}
}

// aheadConn returns a connection with a receive buffer of the given size, and its peer.
func aheadConn(t *testing.T, room int) (*Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = served.Close() })
	f, err := served.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	fd := int(f.Fd())
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room) != nil { // which needs a privilege
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, room); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil || has < room {
		t.Skipf("the system keeps no more than %d bytes: %v", has, err)
	}
	e := new(Engine)
	e.buffers.init(memory.New(0), 64<<10)
	return &Conn{fd: int32(fd), loop: &loop{e: e}}, peer.(*net.TCPConn)
}

// awaitFinish waits until the peer's end of the stream has arrived.
func awaitFinish(t *testing.T, c *Conn) {
	t.Helper()
	fds := []unix.PollFd{{Fd: c.fd, Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(fds, 10_000); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}
