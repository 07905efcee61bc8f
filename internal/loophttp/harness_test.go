//go:build linux

package loophttp_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A pieceServer is an app on the loop engine with a Unix socket, on which a client can detect how much the server has read.
type pieceServer struct{ path string }

func startPieces(tb testing.TB, register func(*dunlin.App)) *pieceServer {
	tb.Helper()
	ready := make(chan struct{})
	app, _ := suite.NewApp(dunlin.Config{Engine: dunlin.EngineLoop, Ready: func(net.Addr, dunlin.Engine) { close(ready) }})
	register(app)
	ln, err := net.Listen("unix", filepath.Join(tb.TempDir(), "s"))
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Serve(ln) }()
	<-ready
	tb.Cleanup(func() {
		if err := app.Shutdown(tb.Context()); err != nil && tb.Context().Err() == nil {
			tb.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
	return &pieceServer{ln.Addr().String()}
}

// converse sends the pieces over one connection, each after the server has read the previous one, and then closes the sending
// side. It returns all bytes received until the server closes.
func (s *pieceServer) converse(tb testing.TB, pieces [][]byte) []byte {
	tb.Helper()
	nc, err := net.Dial("unix", s.path)
	if err != nil {
		tb.Fatal(err)
	}
	conn := nc.(*net.UnixConn)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(suite.Patience)); err != nil {
		tb.Fatal(err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		tb.Fatal(err)
	}
	received := make(chan []byte, 1)
	var readErr error
	go func() {
		var all []byte
		all, readErr = io.ReadAll(conn)
		received <- all
	}()
	for _, piece := range pieces {
		if _, err := conn.Write(piece); err != nil {
			break // the server has closed: the received answers count
		}
		for unread(raw) {
			letServerRead()
		}
	}
	_ = conn.CloseWrite()
	all := <-received
	if readErr != nil && !isReset(readErr) {
		tb.Fatalf("after %q: %v", all, readErr)
	}
	return all
}

// letServerRead yields the processor briefly. A busy loop would take it from the server if other processes need it too, and the
// runtime's timers are too coarse.
func letServerRead() {
	_ = unix.Nanosleep(&unix.Timespec{Nsec: 10_000}, nil) // may be interrupted
}

// unread reports whether the peer of a Unix socket has not read all sent bytes (unix(7), SIOCOUTQ).
func unread(raw interface{ Control(func(uintptr)) error }) bool {
	var n int
	var err error
	if raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) != nil {
		return false
	}
	return err == nil && n > 0
}
