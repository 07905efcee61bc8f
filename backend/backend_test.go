package backend_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/backend"
)

var networks = []string{"tcp", "unix"}

// pair returns a connection from Dial and the other end of it.
func pair(t testing.TB, network string) (dialed, other net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil && network == "unix" && runtime.GOOS != "linux" {
		t.Skip("no unix socket at this path: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialed, err = backend.Dial(context.Background(), network, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if other, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); other.Close() })
	return dialed, other
}

func TestCarriesBytesBothWays(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			c, other := pair(t, network)
			sent := make([]byte, 5<<20) // more than a socket buffers
			rand.Read(sent)
			var echo sync.WaitGroup
			echo.Go(func() { io.Copy(other, other) })
			var write sync.WaitGroup
			write.Go(func() {
				if n, err := c.Write(sent); n != len(sent) || err != nil {
					t.Errorf("Write = %d, %v", n, err)
				}
			})
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("read %d bytes that differ, or %v", len(got), err)
			}
			write.Wait()
			other.Close()
			echo.Wait()
		})
	}
}

func TestEndOfStream(t *testing.T) {
	for _, network := range networks {
		c, other := pair(t, network)
		other.Write([]byte("last"))
		other.Close()
		if got, err := io.ReadAll(c); string(got) != "last" || err != nil {
			t.Errorf("%s: ReadAll = %q, %v", network, got, err)
		}
	}
}

func TestEmptySlices(t *testing.T) {
	c, _ := pair(t, "tcp")
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("Read(nil) = %d, %v", n, err)
	}
	if n, err := c.Write(nil); n != 0 || err != nil {
		t.Errorf("Write(nil) = %d, %v", n, err)
	}
}

// TestErrorsAreThoseOfNet compares the errors with those of the same operations on a connection of package net.
func TestErrorsAreThoseOfNet(t *testing.T) {
	past := time.Unix(1, 0)
	steps := map[string]func(c, other net.Conn) error{
		"read after deadline": func(c, _ net.Conn) error {
			c.SetReadDeadline(past)
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"write after deadline": func(c, _ net.Conn) error {
			c.SetWriteDeadline(past)
			_, err := c.Write([]byte("x"))
			return err
		},
		"read after Close": func(c, _ net.Conn) error {
			c.Close()
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"write after Close": func(c, _ net.Conn) error {
			c.Close()
			_, err := c.Write([]byte("x"))
			return err
		},
		"read after a reset": func(c, other net.Conn) error {
			other.(*net.TCPConn).SetLinger(0)
			other.Close()
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"write after a reset": func(c, other net.Conn) error {
			other.(*net.TCPConn).SetLinger(0)
			other.Close()
			c.Read(make([]byte, 1)) // until it is known
			_, err := c.Write([]byte("x"))
			return err
		},
	}
	for name, step := range steps {
		c, other := pair(t, "tcp")
		got := step(c, other)
		address := c.RemoteAddr().String()
		plain, other := plainPair(t)
		want := step(plain, other)
		same := got != nil && want != nil
		for _, is := range []error{os.ErrDeadlineExceeded, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
			same = same && errors.Is(got, is) == errors.Is(want, is)
		}
		g, _ := errors.AsType[*net.OpError](got)
		w, _ := errors.AsType[*net.OpError](want)
		if !same || g == nil || w == nil || g.Op != w.Op || g.Net != w.Net || g.Timeout() != w.Timeout() || g.Addr.String() != address {
			t.Errorf("%s: %v, package net: got %v", name, got, want)
		}
	}
}

func plainPair(t *testing.T) (c, other net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if c, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if other, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); other.Close() })
	return c, other
}

// TestWaitingEnds checks that a deadline and Close end a waiting Read, and a Write that the peer does not read.
func TestWaitingEnds(t *testing.T) {
	much := make([]byte, 64<<20)
	ends := map[string]func(c net.Conn) error{
		"deadline": func(c net.Conn) error { return c.SetDeadline(time.Unix(1, 0)) },
		"Close":    net.Conn.Close,
	}
	for name, end := range ends {
		for _, network := range networks {
			c, _ := pair(t, network)
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Errorf("%s, %s: Read returned without an error", network, name)
				}
			})
			waiting.Go(func() {
				if n, err := c.Write(much); err == nil || n == len(much) {
					t.Errorf("%s, %s: Write = %d, %v", network, name, n, err)
				}
			})
			if err := end(c); err != nil {
				t.Error(err)
			}
			waiting.Wait()
		}
	}
}

// TestManyUseOneConnection: the bytes of each Write stay together, and each byte is read once.
func TestManyUseOneConnection(t *testing.T) {
	c, other := pair(t, "tcp")
	const users, size = 8, 200 << 10
	var writers, readers sync.WaitGroup
	for i := range users {
		writers.Go(func() { c.Write(bytes.Repeat([]byte{byte(i)}, size)) })
	}
	for range users {
		piece := make([]byte, size)
		if _, err := io.ReadFull(other, piece); err != nil || bytes.Count(piece, piece[:1]) != size {
			t.Fatalf("a write was interleaved with another one, or failed: %v", err)
		}
	}
	writers.Wait()
	var mu sync.Mutex
	total := 0
	for range users {
		readers.Go(func() {
			b := make([]byte, 1000)
			for {
				n, err := c.Read(b)
				mu.Lock()
				total += n
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	other.Write(make([]byte, size))
	other.Close()
	readers.Wait()
	if total != size {
		t.Errorf("got %d of %d bytes", total, size)
	}
}

func TestOtherConnectionsAreNotWrapped(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for _, c := range []net.Conn{a, udp.(*net.UDPConn)} {
		if backend.Wrap(c) != c {
			t.Errorf("Wrap changed a %T", c)
		}
	}
}

func TestDialFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := backend.Dial(ctx, "tcp", "127.0.0.1:1"); err == nil || c != nil {
		t.Errorf("Dial = %v, %v", c, err)
	}
}
