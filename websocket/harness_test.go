package websocket_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/ws"
	"github.com/dunlinhttp/dunlin/websocket"
)

// patience bounds all waits of tests; no test is expected to reach it.
const patience = 20 * time.Second

// onServers runs f on both engines, in clear text and with TLS. open opens a WebSocket at the path /.
func onServers(t *testing.T, config dunlin.Config, o *websocket.Options, f func(t *testing.T, app *dunlin.App, open func(header ...string) *client)) {
	t.Helper()
	handler := websocket.New(*o)
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "clear", true: "TLS"}[secure], func(t *testing.T) {
			dunlintest.OnEngines(t, config, func(t *testing.T, app *dunlin.App) {
				app.Get("/", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, nil) })
				dial := server(t, app, secure)
				f(t, app, func(header ...string) *client {
					t.Helper()
					c, resp := handshake(t, dial(), header...)
					if resp.StatusCode != http.StatusSwitchingProtocols {
						t.Fatalf("the handshake was answered %s", resp.Status)
					}
					return c
				})
			})
		})
	}
}

// server serves app and returns a function that opens a connection to it.
func server(t *testing.T, app *dunlin.App, secure bool) func() net.Conn {
	t.Helper()
	if !secure {
		addr := dunlintest.Serve(t, app)
		return func() net.Conn { return dialed(t)(net.Dial("tcp", addr)) }
	}
	certs := httptest.NewTLSServer(nil) // it has a certificate
	t.Cleanup(certs.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = app.ServeTLS(ln, &tls.Config{Certificates: certs.TLS.Certificates}) // it ends with the test
	}()
	t.Cleanup(func() { shutdown(t, app); <-served })
	return func() net.Conn {
		return dialed(t)(tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true}))
	}
}

func dialed(t *testing.T) func(net.Conn, error) net.Conn {
	return func(conn net.Conn, err error) net.Conn {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
}

// A client is the client's side of a WebSocket, with control over each byte.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

const key = "dGhlIHNhbXBsZSBub25jZQ=="

// handshake sends an opening handshake. header has names and values.
func handshake(t *testing.T, conn net.Conn, header ...string) (*client, *http.Response) {
	t.Helper()
	h := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {key}}
	for i := 0; i+1 < len(header); i += 2 {
		if h.Del(header[i]); header[i+1] != "" {
			h.Set(header[i], header[i+1])
		}
	}
	var b strings.Builder
	b.WriteString("GET / HTTP/1.1\r\nHost: test.example\r\n")
	_ = h.Write(&b)
	c := &client{t, conn, bufio.NewReader(conn)}
	c.send(b.String() + "\r\n")
	if n, _ := strconv.Atoi(h.Get("Content-Length")); n > 0 {
		c.send(strings.Repeat("x", n))
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, resp
}

func (c *client) send(bytes string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, bytes); err != nil {
		c.t.Fatal(err)
	}
}

// frame returns the next frame, first byte and payload; "" at the end of the connection.
func (c *client) frame() string {
	c.t.Helper()
	var head [10]byte
	if _, err := io.ReadFull(c.r, head[:2]); err != nil {
		if err != io.EOF {
			c.t.Fatal(err)
		}
		return ""
	}
	n := uint64(head[1])
	switch n {
	case 126:
		_, _ = io.ReadFull(c.r, head[2:4])
		n = uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		_, _ = io.ReadFull(c.r, head[2:10])
		n = binary.BigEndian.Uint64(head[2:])
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(c.r, payload); err != nil {
		c.t.Fatal(err)
	}
	return string(head[:1]) + string(payload)
}

// rest returns all frames until the end of the connection.
func (c *client) rest() (frames []string) {
	for {
		f := c.frame()
		if f == "" {
			return frames
		}
		frames = append(frames, f)
	}
}

func (c *client) expect(want string) {
	c.t.Helper()
	if got := c.frame(); got != want {
		c.t.Fatalf("got the frame %q, want %q", short(got), short(want))
	}
}

func short(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

// frame returns a masked frame. first has the bits and the opcode.
func frame(first byte, payload string) string {
	b := ws.AppendHeader(nil, 0, false, false, len(payload))
	b[0] = first
	b[1] |= 0x80
	b = append(b, 1, 2, 3, 4)
	at := len(b)
	b = append(b, payload...)
	ws.Mask(0x04030201).Apply(b[at:])
	return string(b)
}

// The first bytes of frames.
const (
	fin    = 0x80
	rsv1   = 0x40
	text   = fin | 1
	bin    = fin | 2
	closes = fin | 8
	ping   = fin | 9
	pong   = fin | 10
	cont   = fin // opcode 0
)

func text1(s string) string { return string([]byte{text}) + s }

// closing is the payload of a close frame.
func closing(code websocket.Code, reason string) string {
	return string([]byte{byte(code >> 8), byte(code)}) + reason
}

func closed(code websocket.Code, reason string) string {
	return string([]byte{closes}) + closing(code, reason)
}

var bye = frame(closes, closing(websocket.Normal, ""))

func shutdown(t *testing.T, app *dunlin.App) {
	t.Helper()
	ctx, cancel := contextWithin(patience)
	defer cancel()
	_ = app.Shutdown(ctx)
}
