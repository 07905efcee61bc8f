//go:build unix

package lifecycle_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// openSocket opens a WebSocket, over TLS if trusted is not nil. It returns a function that reads the rest of the connection, after it
// has answered the close frame.
func openSocket(t *testing.T, addr string, trusted *x509.CertPool) (rest func() string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(suite.Patience))
	if trusted != nil {
		conn = tls.Client(conn, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"})
	}
	_, _ = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: h.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	head := make([]byte, 0, 1024)
	for !strings.HasSuffix(string(head), "\r\n\r\n") {
		if _, err := io.ReadFull(conn, head[len(head):len(head)+1]); err != nil {
			t.Fatal(err)
		}
		head = head[:len(head)+1]
	}
	if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") {
		t.Fatalf("the handshake was answered %q", head)
	}
	return func() string {
		t.Helper()
		frame := make([]byte, 2)
		if _, err := io.ReadFull(conn, frame); err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, frame[1])
		if _, err := io.ReadFull(conn, payload); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte{0x88, 0x80, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		after, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		return string(frame[:1]) + string(payload) + string(after)
	}
}

// A restart closes WebSockets with 1012, and a shutdown with 1001.
func TestRestartClosesSockets(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := suite.NewCert(t)
		s := startService(t, []string{"TEST_ENGINE=" + engine.String(), "TEST_CERT=" + certFile, "TEST_KEY=" + keyFile})
		pid, clear := s.serving()
		_, secure := s.serving()
		closes := func(sig syscall.Signal, want string) {
			t.Helper()
			sockets := []func() string{openSocket(t, clear, nil), openSocket(t, secure, trusted)}
			s.signal(pid, sig)
			for _, rest := range sockets {
				if got := rest(); got != "\x88"+want {
					t.Errorf("after %v: got %q, want a close frame with %q", sig, got, want)
				}
			}
		}
		closes(syscall.SIGHUP, "\x03\xf4server is restarting: reconnect within 1000 ms")
		pid, _ = s.serving()
		s.serving()
		closes(syscall.SIGTERM, "\x03\xe9server is shutting down: reconnect within 1000 ms")
	})
}
