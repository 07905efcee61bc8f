//go:build linux

package engine

import (
	"bytes"
	"math/rand/v2"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// What a peer has sent is seen ahead, piece by piece, when it has finished, and stays to be read.
func TestAhead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if err := served.(*net.TCPConn).SetReadBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	f, err := served.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := new(Engine)
	e.buffers.init(admission.NewBudget(0), 64<<10)
	c := &Conn{fd: int32(f.Fd()), loop: &loop{e: e}}
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
	if err := peer.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	fds := []unix.PollFd{{Fd: c.fd, Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(fds, 10_000); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for range 2 { // it stays
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
