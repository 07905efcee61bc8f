package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/store"
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

// serve returns the address of a process with this store.
func serve(t *testing.T, st store.Store) (addr string) {
	t.Helper()
	app, err := newApp(t.Context(), dunlin.Config{}, st)
	if err != nil {
		t.Fatal(err)
	}
	return dunlintest.Serve(t, app)
}

// Guests of two processes are in the same room.
func TestRoomsOfTwoProcesses(t *testing.T) {
	st := store.NewMemory(store.MemoryConfig{})
	first, second := serve(t, st), serve(t, st)
	anna, annaHears := join(t, first, "birds?name=anna")
	anna("!subscribe - birds members/birds")
	_ = annaHears() // her position
	expect := func(want string) {
		t.Helper()
		for {
			_, got, _ := strings.Cut(annaHears(), "\n")
			if got == want {
				return
			}
			if got != "+anna" {
				t.Fatalf("got message %q, want %q", got, want)
			}
		}
	}
	bert, _ := join(t, second, "birds?name=bert")
	expect("+bert")
	bert("I saw a dunlin")
	expect("I saw a dunlin")
}

func TestRooms(t *testing.T) {
	addr := serve(t, store.NewMemory(store.MemoryConfig{}))
	events, err := http.Get("http://" + addr + "/rooms/birds/events")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = events.Body.Close() }()
	anna, annaHears := join(t, addr, "birds?name=anna")
	bert, bertHears := join(t, addr, "birds?name=bert")
	carl, carlHears := join(t, addr, "fish")
	expect := func(hears func() string, want string) {
		t.Helper()
		got := hears()
		if _, text, ok := strings.Cut(got, "\n"); ok {
			got = text
		}
		if got != want {
			t.Errorf("got message %q, want %q", got, want)
		}
	}
	anna("!subscribe - members/birds")
	if got := annaHears(); !strings.HasPrefix(got, "!at ") {
		t.Errorf("got message %q", got)
	}
	members := map[string]bool{}
	for len(members) < 2 {
		_, text, _ := strings.Cut(annaHears(), "\n")
		members[text] = true
	}
	if !members["+anna"] || !members["+bert"] {
		t.Errorf("members %v", members)
	}
	anna("!unsubscribe members/birds")
	for say, hears := range map[*func(string)]func() string{&anna: annaHears, &bert: bertHears} {
		(*say)("!subscribe - birds")
		if got := hears(); !strings.HasPrefix(got, "!at ") {
			t.Errorf("heard %q", got)
		}
	}
	anna("I saw a dunlin")
	expect(annaHears, "I saw a dunlin")
	expect(bertHears, "I saw a dunlin")
	carl("!subscribe - birds")
	if got := carlHears(); got != "!refused birds\nthat is not your room" {
		t.Errorf("heard %q", got)
	}
	carl("!subscribe - fish")
	_ = carlHears()
	carl("anybody here?")
	expect(carlHears, "anybody here?")
	bert("where?")
	expect(annaHears, "where?")
	lines := bufio.NewScanner(events.Body)
	for lines.Scan() && lines.Text() != "data: where?" {
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}
