package looph2_test

import (
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// field appends a field to a block, without any table.
func field(b []byte, name, value string) []byte {
	number := func(n int) {
		if n < 127 {
			b = append(b, byte(n))
			return
		}
		b = append(b, 127)
		for n -= 127; n >= 128; n >>= 7 {
			b = append(b, byte(n)|128)
		}
		b = append(b, byte(n))
	}
	b = append(b, 0)
	number(len(name))
	b = append(b, name...)
	number(len(value))
	return append(b, value...)
}

// request sends the head of a request.
func (c *h2Conn) request(id uint32, end bool, method, path string, fields ...string) {
	c.t.Helper()
	var b []byte
	for name, value := range map[string]string{":method": method, ":scheme": "http", ":authority": "h.example", ":path": path} {
		b = field(b, name, value)
	}
	for i := 0; i < len(fields); i += 2 {
		b = field(b, fields[i], fields[i+1])
	}
	kind, flags := byte(1), byte(0)
	if end {
		flags = 1
	}
	for len(b) > 0 {
		n := min(len(b), 16<<10)
		if n == len(b) {
			flags |= 4
		}
		if c.frame(kind, flags, id, b[:n]...) != nil {
			return // the server has ended the connection
		}
		kind, flags, b = 9, 0, b[n:]
	}
}

// open opens a connection whose answers nobody looks at.
func (s *h2Server) open() *h2Conn {
	c := newH2Conn(s.t, s.addr)
	_ = c.frame(4, 0, 0)
	go func() { _, _ = io.Copy(io.Discard, c) }()
	return c
}

func onLoop(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
}

// A client that leaves a frame half sent does not keep a connection that is to end.
func TestHalfAFrameAtTheEnd(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, MaxRequestsPerConnection: 1, IdleTimeout: time.Second}, func(app *dunlin.App) {
		app.Post("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("early") })
	})
	c := newH2Conn(t, s.addr)
	_ = c.frame(4, 0, 0)
	c.request(1, false, "POST", "/")
	_, _ = c.Write([]byte{0, 0, 100, 0, 0, 0, 0, 0, 1, 'x'}) // 1 byte of 100
	c.wantEnd()
}
