//go:build linux

package load

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

func TestUpstreamAnswersAfterTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	addr, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- Upstream{Addr: "127.0.0.1:0", Ready: func(a net.Addr) { addr <- a }}.Run(ctx)
	}()
	at := (<-addr).String()
	// The longer wait is requested first, and its answer must not delay the other answers.
	slow, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	quick, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer quick.Close()
	start := time.Now()
	for _, ask := range []struct {
		conn net.Conn
		us   uint32
	}{{slow, 30_000}, {quick, 100}} {
		if _, err := ask.conn.Write(binary.BigEndian.AppendUint32(nil, ask.us)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct {
		conn net.Conn
		us   uint32
	}{{quick, 100}, {slow, 30_000}} {
		var word [4]byte
		if _, err := io.ReadFull(want.conn, word[:]); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(word[:]); got != want.us {
			t.Errorf("got answer %d, want %d", got, want.us)
		}
		if took := time.Since(start); took < time.Duration(want.us)*time.Microsecond {
			t.Errorf("answered after %v, want at least %d µs", took, want.us)
		}
	}
	quick.Close() // a client that disconnects does not affect the others
	if _, err := slow.Write(binary.BigEndian.AppendUint32(nil, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(slow, make([]byte, 4)); err != nil {
		t.Errorf("after another client has disconnected: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
