package topic_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/ws"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

// patience bounds all waits of tests; no test is expected to reach it.
const patience = 20 * time.Second

// A socket is a client of a WebSocket.
type socket struct {
	t testing.TB
	net.Conn
	r        *bufio.Reader
	deflated int // bytes of compressed payloads
}

// onEngines runs f on both engines with a hub and a function that opens a WebSocket, which sends commands to Hub.Handle.
func onEngines(t *testing.T, s topic.Settings, f func(t *testing.T, hub *topic.Hub, open func() *socket)) {
	t.Helper()
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, s)
		open := sockets(t, app, hub)
		f(t, hub, open)
	})
}

func allowAll(*websocket.Conn, string) error { return nil }

// sockets serves app with a WebSocket for commands, and returns a function that opens one.
func sockets(t *testing.T, app *dunlin.App, hub *topic.Hub) func() *socket {
	addr := serve(t, app, hub)
	return func() *socket { return dial(t, addr) }
}

// serve implements sockets, and returns the address.
func serve(t *testing.T, app *dunlin.App, hub *topic.Hub) (addr string) {
	handler := websocket.New(websocket.Options{Compress: true, Message: func(c *websocket.Conn, m websocket.Message) {
		if key, ok := strings.CutPrefix(string(m.Data), "!join "); ok {
			if err := hub.Topic("members").Join(c, key, []byte("+"+key), []byte("-"+key)); err != nil {
				t.Error(err)
			}
			return
		}
		if !hub.Handle(c, m, allowAll) {
			_ = c.Send(m.Kind, m.Data)
		}
	}})
	app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, nil) })
	return dunlintest.Serve(t, app)
}

// dial opens a WebSocket. control may set options of the connection.
func dial(t testing.TB, addr string, control ...func(_, _ string, c syscall.RawConn) error) *socket {
	t.Helper()
	var d net.Dialer
	if len(control) > 0 {
		d.Control = control[0]
	}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	s := &socket{t: t, Conn: conn, r: bufio.NewReader(conn)}
	s.handshake("")
	return s
}

// dialDeflate opens a WebSocket with compression.
func dialDeflate(t testing.TB, addr string) *socket {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	s := &socket{t: t, Conn: conn, r: bufio.NewReader(conn)}
	s.handshake("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n")
	return s
}

// handshake makes the opening handshake.
func (s *socket) handshake(header string) {
	s.t.Helper()
	_, _ = io.WriteString(s, "GET /socket HTTP/1.1\r\nHost: h.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"+header+"\r\n")
	resp, err := http.ReadResponse(s.r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		s.t.Fatalf("the handshake was answered %v, %v", resp, err)
	}
}

// say sends a text message of fewer than 126 bytes.
func (s *socket) say(format string, args ...any) {
	s.t.Helper()
	text := fmt.Sprintf(format, args...)
	if _, err := s.Write(append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)); err != nil {
		s.t.Fatal(err)
	}
}

// next returns the next frame: a text, or "close " and the code.
func (s *socket) next() (string, error) {
	var head [10]byte
	if _, err := io.ReadFull(s.r, head[:2]); err != nil {
		return "", err
	}
	n := uint64(head[1])
	switch n {
	case 126:
		_, _ = io.ReadFull(s.r, head[2:4])
		n = uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		_, _ = io.ReadFull(s.r, head[2:10])
		n = binary.BigEndian.Uint64(head[2:])
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(s.r, b); err != nil {
		return "", err
	}
	switch head[0] {
	case 0x81:
		return string(b), nil
	case 0xc1:
		s.deflated += len(b)
		b, err := ws.Inflate(b, 1<<20, ws.Grown)
		return string(b), err
	case 0x88:
		return fmt.Sprint("close ", binary.BigEndian.Uint16(b)), nil
	}
	return "", fmt.Errorf("frame with first byte %x", head[0])
}

func (s *socket) hear() string {
	s.t.Helper()
	text, err := s.next()
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// expect expects a message of a topic, and returns its ID.
func (s *socket) expect(name, data string) (id string) {
	s.t.Helper()
	text := s.hear()
	id, rest, _ := strings.Cut(text, " ")
	if want := name + "\n" + data; rest != want {
		s.t.Fatalf("got %q, want the message %q", text, want)
	}
	return id
}

// position expects an announcement, such as "!at", and returns its ID.
func (s *socket) position(word string) (id string) {
	s.t.Helper()
	text := s.hear()
	id, ok := strings.CutPrefix(text, word+" ")
	if !ok {
		s.t.Fatalf("got %q, want %s", text, word)
	}
	return id
}

func publish(t *testing.T, to topic.Topic, messages ...string) {
	t.Helper()
	var list [][]byte
	for _, m := range messages {
		list = append(list, []byte(m))
	}
	if err := to.Publish(list...); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, to topic.Topic, key, message string) {
	t.Helper()
	if err := to.Put(key, []byte(message)); err != nil {
		t.Fatal(err)
	}
}
