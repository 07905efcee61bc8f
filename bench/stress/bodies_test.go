//go:build linux

package stress_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/stress/pattern"
)

// bodyConnections is the number of connections that share the bytes.
const bodyConnections = 16

// totalBytes returns the number of bytes to send or receive, over all connections.
func totalBytes() int64 { return either[int64](64*mb, 2048*mb) }

// hashOf returns the hash of a pattern.
func hashOf(seed uint64, size int64) (string, error) {
	h := sha256.New()
	err := pattern.Pieces(seed, size, func(piece []byte) error {
		_, err := h.Write(piece)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// Request bodies of any size need a bounded amount of memory, and arrive unchanged.
func TestUploads(t *testing.T) {
	for _, framing := range []string{"length", "chunked"} {
		t.Run(framing, func(t *testing.T) {
			moveBytes(t, func(conn net.Conn, seed uint64, size int64) error {
				return uploadOne(conn, seed, size, framing == "chunked")
			})
		})
	}
}

// The same holds for streamed answers.
func TestStreams(t *testing.T) { moveBytes(t, streamOne) }

// moveBytes moves the bytes over all connections at once, on each engine, and checks the growth of memory.
func moveBytes(t *testing.T, move func(conn net.Conn, seed uint64, size int64) error) {
	for _, engine := range []string{"loop", "std"} {
		t.Run(engine, func(t *testing.T) {
			s := startService(t, nil, nil, "-engine", engine)
			pid, addr := s.serving()
			conns := make([]net.Conn, bodyConnections)
			for i := range conns {
				conns[i] = connect(t, addr)
				if err := move(conns[i], 0, 100); err != nil {
					t.Fatal(err)
				}
			}
			before := resident(t, pid, "VmRSS")
			resetPeak(t, pid)
			began := time.Now()
			var moving sync.WaitGroup
			for i, conn := range conns {
				moving.Go(func() {
					if err := move(conn, uint64(i), totalBytes()/bodyConnections); err != nil {
						t.Errorf("connection %d: %v", i, err)
					}
				})
			}
			moving.Wait()
			t.Logf("%d MB at %d connections in %.1f s", totalBytes()/mb, bodyConnections, time.Since(began).Seconds())
			atMost(t, "growth of resident memory", resident(t, pid, "VmHWM")-before, 16*mb)
		})
	}
}

// connect returns a connection that lasts as long as the test.
func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// uploadOne sends a pattern and compares the answered hash with the hash of the sent bytes.
func uploadOne(conn net.Conn, seed uint64, size int64, chunked bool) error {
	out := bufio.NewWriterSize(conn, 64<<10)
	framing := fmt.Sprintf("Content-Length: %d", size)
	if chunked {
		framing = "Transfer-Encoding: chunked"
	}
	_, _ = fmt.Fprintf(out, "POST /upload HTTP/1.1\r\nHost: holds\r\n%s\r\n\r\n", framing)
	sent := sha256.New()
	err := pattern.Pieces(seed, size, func(piece []byte) error {
		_, _ = sent.Write(piece)
		if chunked {
			_, _ = fmt.Fprintf(out, "%x\r\n", len(piece))
		}
		_, err := out.Write(piece)
		if chunked {
			_, err = out.WriteString("\r\n")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if chunked {
		_, _ = out.WriteString("0\r\n\r\n")
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(resp.Body)
	if want := fmt.Sprintf("%d %x", size, sent.Sum(nil)); err != nil || string(answer) != want {
		return fmt.Errorf("sent %s, it got %s (%v)", want, answer, err)
	}
	return nil
}

// streamOne receives a pattern and compares its hash.
func streamOne(conn net.Conn, seed uint64, size int64) error {
	resp, err := ask(conn, "/stream/%d/%d", seed, size)
	if err != nil {
		return err
	}
	got := sha256.New()
	n, err := io.Copy(got, resp.Body)
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	want, err := hashOf(seed, size)
	if hash := hex.EncodeToString(got.Sum(nil)); err != nil || n != size || hash != want {
		return fmt.Errorf("%d bytes with hash %s came, want %d with %s (%v)", n, hash, size, want, err)
	}
	return nil
}

// ask sends a request and returns the answer.
func ask(conn net.Conn, path string, args ...any) (*http.Response, error) {
	if _, err := fmt.Fprintf(conn, "GET "+path+" HTTP/1.1\r\nHost: holds\r\n\r\n", args...); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReaderSize(conn, 64<<10), nil)
}
