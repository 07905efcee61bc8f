package looph2_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// goAway returns the code of the next GOAWAY.
func (c *h2Conn) goAway() uint32 {
	c.t.Helper()
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			c.t.Fatalf("waiting for GOAWAY: %v", err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c, payload); err != nil {
			c.t.Fatal(err)
		}
		if head[3] == frameGoAway {
			return binary.BigEndian.Uint32(payload[4:])
		}
	}
}

// A client that sends too much is informed of the reason for the end of its connection, though a moment later, and others are
// served meanwhile. Neither its requests nor its memory stay, and a drain does not wait.
func TestAbusiveClientLearnsReason(t *testing.T) {
	onLoop(t)
	entered, canceled := make(chan bool, 10), make(chan bool, 10)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
		app.Get("/waits", func(r *dunlin.Request) dunlin.Response {
			entered <- true
			<-r.Context().Done()
			canceled <- true
			return dunlin.Text("over")
		})
	})
	ping := []byte{0, 0, 8, 6, 0, 0, 0, 0, 0, '1', '2', '3', '4', '5', '6', '7', '8'}
	attack := func(ended uint64) *h2Conn {
		c := newH2Conn(t, s.addr)
		_ = c.frame(frameSettings, 1, 0)
		c.request(1, true, "GET", "/waits")
		<-entered
		if _, err := c.Write(bytes.Repeat(ping, 1500)); err != nil {
			t.Fatal(err)
		}
		<-canceled
		soon(t, "it is counted", func() bool { return s.app.Stats().Shed["h2-pings"] == ended })
		status, body := s.get("/")
		want(t, status, body, 200, "hello")
		return c
	}
	c := attack(1)
	if code := c.goAway(); code != 0xb {
		t.Errorf("GOAWAY says %#x, want ENHANCE_YOUR_CALM", code)
	}
	c.wantEnd()
	_ = c.Close()
	c = attack(2)
	stopped := make(chan bool)
	go func() {
		s.stop()
		close(stopped)
	}()
	if code := c.goAway(); code != 0xb {
		t.Errorf("in a drain GOAWAY says %#x, want ENHANCE_YOUR_CALM", code)
	}
	_ = c.Close()
	<-stopped
}

// Fields that are too large are answered with 431, and the connection continues. Fields far larger end the connection, but
// other clients of the address are not distrusted.
func TestLargeHeaderFields(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
	})
	cookie := strings.Repeat("c", 4000)
	cookies := func(n int) (fields []string) {
		for range n {
			fields = append(fields, "cookie", cookie)
		}
		return fields
	}
	c := newH2Conn(t, s.addr)
	_ = c.frame(frameSettings, 1, 0)
	for id := uint32(1); id < 20; id += 4 {
		c.request(id, true, "GET", "/", cookies(15)...)
		c.wantFrame(frameHeaders)
		c.request(id+2, true, "GET", "/")
		c.wantFrame(frameData)
	}
	if n := s.app.Stats().Shed["h2-field-blocks"]; n != 0 {
		t.Errorf("%d clients are counted", n)
	}
	c.request(41, true, "GET", "/", cookies(40)...)
	if code := c.goAway(); code != 0xb {
		t.Errorf("GOAWAY says %#x, want ENHANCE_YOUR_CALM", code)
	}
	other := newH2Conn(t, s.addr)
	_ = other.frame(frameSettings, 1, 0)
	for range 700 { // a distrusted client may send at most 250
		_ = other.frame(framePing, 0, 0, []byte("12345678")...)
	}
	for range 700 {
		other.wantFrame(framePing)
	}
}
