package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// join opens a WebSocket to a room. Its messages must be shorter than 126 bytes.
func join(t *testing.T, addr, room string) (say func(string), hear func() string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "GET /rooms/%s HTTP/1.1\r\nHost: h.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", room)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the handshake was answered %v, %v", resp, err)
	}
	say = func(text string) {
		frame := append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...) // masked with zeros
		if _, err := conn.Write(frame); err != nil {
			t.Error(err)
		}
	}
	hear = func() string {
		t.Helper()
		head := make([]byte, 2)
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, head[1])
		if _, err := io.ReadFull(r, text); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return say, hear
}

func TestRooms(t *testing.T) {
	addr := dunlintest.Serve(t, newApp(dunlin.Config{}))
	anna, annaHears := join(t, addr, "birds")
	bert, bertHears := join(t, addr, "birds")
	carl, carlHears := join(t, addr, "fish")
	anna("I saw a dunlin")
	for _, hears := range []func() string{annaHears, bertHears} {
		if got := hears(); got != "I saw a dunlin" {
			t.Errorf("heard %q", got)
		}
	}
	carl("anybody here?")
	if got := carlHears(); got != "anybody here?" {
		t.Errorf("heard %q in another room", got)
	}
	bert("where?")
	if got := annaHears(); got != "where?" {
		t.Errorf("heard %q", got)
	}
}
