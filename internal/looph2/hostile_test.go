package looph2_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
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
	c.fields(id, end, append([]string{":method", method, ":scheme", "http", ":authority", "h.example", ":path", path}, fields...)...)
}

// fields sends a field block.
func (c *h2Conn) fields(id uint32, end bool, fields ...string) {
	var b []byte
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

// open opens a connection and discards its answers.
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

// An incomplete frame does not delay the end of a connection.
func TestPartialFrameAtClose(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxRequestsPerConnection: 1}}, func(app *dunlin.App) {
		app.Post("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("early") })
	})
	c := newH2Conn(t, s.addr)
	_ = c.frame(4, 0, 0)
	c.request(1, false, "POST", "/")
	_, _ = c.Write([]byte{0, 0, 100, 0, 0, 0, 0, 0, 1, 'x'}) // 1 byte of 100
	c.wantEnd()
}

// The memory of streams that wait for a worker, whose actions do not read their bodies or whose answers last, and of incomplete
// field blocks, stays within the budget.
func TestMemoryOfStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("a longer test")
	}
	onLoop(t)
	long := strings.Repeat("h", 15<<10)
	for _, test := range []struct {
		name string
		send func(s *h2Server)
	}{
		{"heads", func(s *h2Server) {
			for range 4 {
				for c, i := s.open(), 0; i < 120; i++ {
					c.request(uint32(2*i+1), true, "GET", "/blocks", "a", long, "b", long, "c", long)
				}
			}
		}},
		{"lasting answers", func(s *h2Server) {
			for range 4 {
				for c, i := s.open(), 0; i < 120; i++ {
					c.request(uint32(2*i+1), true, "GET", "/lasts", "a", long, "b", long, "c", long)
				}
			}
		}},
		{"bodies", func(s *h2Server) {
			for range 12 {
				for c, i := s.open(), 0; i < 32; i++ {
					c.request(uint32(2*i+1), false, "POST", "/blocks")
					_ = c.frame(0, 0, uint32(2*i+1), make([]byte, 16<<10)...)
					_ = c.frame(0, 0, uint32(2*i+1), make([]byte, 16<<10)...)
				}
			}
		}},
		{"trailers", func(s *h2Server) {
			for range 4 {
				for c, i := s.open(), 0; i < 120; i++ {
					id := uint32(2*i + 1)
					c.request(id, false, "POST", "/blocks")
					_ = c.frame(0, 0, id, 'x')
					c.fields(id, true, "a", long, "b", long, "c", long)
				}
			}
		}},
		{"blocks", func(s *h2Server) {
			for range 300 {
				c := s.open()
				_ = c.frame(1, 1, 1, make([]byte, 16<<10)...)
				_ = c.frame(9, 0, 1, make([]byte, 15<<10)...)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			open := make(chan bool)
			s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 32 << 20, QueueTarget: -1, MaxConcurrent: 10}}, func(app *dunlin.App) {
				blocks := func(*dunlin.Request) dunlin.Response {
					<-open
					return dunlin.Text("done")
				}
				app.Get("/blocks", blocks)
				app.Post("/blocks", blocks)
				app.Get("/lasts", func(r *dunlin.Request) dunlin.Response {
					return dunlin.SSE(func(e *dunlin.Events) error {
						if err := e.Comment("begun"); err != nil {
							return err
						}
						<-r.Context().Done()
						return nil
					})
				})
			})
			test.send(s)
			soon(t, "a holder is evicted", func() bool { return s.app.Stats().Shed["largest-holder"] > 0 })
			soon(t, "the budget is kept", func() bool {
				m := s.app.Stats().Memory
				return m.Held-m.HeldFor["cache"] <= m.Budget+m.Budget/4
			})
			close(open)
		})
	}
}

// A request that was refused to make room holds no memory, even if its client opens no window for the refusal.
func TestRefusedRequestHoldsNoMemory(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 1 << 20, QueueTarget: -1}, Timeouts: dunlin.Timeouts{Write: time.Hour, Body: time.Hour}}, func(app *dunlin.App) {
		app.Post("/reads", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text("read")
		})
	})
	for range 30 {
		c := newH2Conn(t, s.addr)
		all := &corked{Conn: c} // most of it arrives before any action begins without the rest
		burst := &h2Conn{all, t}
		_ = burst.frame(frameSettings, 0, 0, 0, 4, 0, 0, 0, 0) // closes the windows for answers' bodies
		for i := range 5 {
			id := uint32(2*i + 1)
			burst.request(id, false, "POST", "/reads", "content-length", "20000")
			_ = burst.frame(0, 0, id, make([]byte, 12_000)...)
		}
		_, _ = c.Write(all.b)
		go func() { _, _ = io.Copy(io.Discard, c) }()
	}
	soon(t, "many are ended", func() bool { return s.app.Stats().Shed["largest-holder"] >= 30 })
	soon(t, "no eviction is pending", func() bool {
		m := s.app.Stats().Memory
		return m.Ending == 0 && m.Held <= m.Budget
	})
}

// Clients that do not send their bodies do not occupy the places of other requests.
func TestStalledBodiesDoNotOccupyPlaces(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		s := startH2(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxConcurrent: 2}}, func(app *dunlin.App) {
			app.Post("/reads", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Bytes("text/plain", body)
			})
		})
		c := s.open()
		const waiting = 30
		for i := range waiting {
			c.request(uint32(2*i+1), false, "POST", "/reads", "content-length", "70000")
		}
		soon(t, "all wait for their bodies", func() bool { return s.app.Stats().Actions.InFlight == waiting })
		for range 5 {
			body := strings.Repeat("b", 70<<10)
			status, got := s.post("/reads", strings.NewReader(body))
			if status != 200 || got != body {
				t.Fatalf("%d with %d bytes, want %d back", status, len(got), len(body))
			}
		}
	})
}

// Reading a received body in small steps returns the sent bytes, and does not move the rest each time.
func TestBodiesReadInSmallSteps(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Post("/", func(r *dunlin.Request) dunlin.Response {
				var all []byte
				body := r.Body()
				for n := 1; ; n = n%13 + 1 {
					var step [16]byte
					k, err := body.Read(step[:n])
					all = append(all, step[:k]...)
					if err == io.EOF {
						return dunlin.Bytes("text/plain", all)
					}
					if err != nil {
						return dunlin.Error(err)
					}
				}
			})
		})
		var want bytes.Buffer
		for i := range 300_000 {
			want.WriteByte(byte(i>>8) ^ byte(i))
		}
		status, got := s.post("/", io.MultiReader(bytes.NewReader(want.Bytes()))) // of unknown length
		if status != 200 || got != want.String() {
			t.Errorf("%d with %d bytes that differ from the sent ones", status, len(got))
		}
	})
}

// A stream that its action begins after its time is not in flight forever.
func TestLateStreamIsNotInFlight(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				<-r.Context().Done()
				return dunlin.SSE(func(e *dunlin.Events) error { return e.Comment("never seen") })
			}).Timeout(10 * time.Millisecond)
		})
		for range 30 { // the later ones run on workers
			status, body := s.get("/")
			want(t, status, body, 503, "")
		}
	})
}

// Frames that a client sends after GOAWAY do not reset the connection: the client would lose earlier answers.
func TestFramesAfterGoAway(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
	})
	c := newH2Conn(t, s.addr)
	_ = c.frame(4, 0, 0)
	c.request(1, true, "GET", "/")
	c.wantFrame(0)
	if err := c.frame(frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff); err != nil {
		t.Fatal(err)
	}
	c.wantEnd()
	for range 3 { // the answer to the first would be a reset, which the next would meet
		if err := c.frame(6, 0, 0, 'h', '2', 's', 'p', 'e', 'c', 0, 0); err != nil {
			t.Fatalf("after GOAWAY: %v", err)
		}
	}
}
