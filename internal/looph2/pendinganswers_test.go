package looph2_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// stuff opens all windows of a client that does not read, requests an endless answer on a stream, and returns when the given
// number of connections is full.
func (c *h2Conn) stuff(s *h2Server, id uint32, stuffed int) {
	c.t.Helper()
	c.openWindows()
	c.request(id, true, "GET", "/fill")
	soon(c.t, "the socket is full", func() bool { return s.app.Stats().Memory.ReadPaused >= stuffed })
}

// mailServer serves routes whose actions wait for open and whose answers have size bytes, and /fill, whose answer has no end.
func mailServer(t *testing.T, config dunlin.Config, size int) (s *h2Server, waiting *atomic.Int32, open chan struct{}) {
	t.Helper()
	onLoop(t)
	waiting, open = new(atomic.Int32), make(chan struct{})
	shared := []byte(strings.Repeat("x", size))
	wait := func() { waiting.Add(1); <-open }
	config.Engine, config.Limits.QueueTarget = dunlin.EngineLoop, -1 // none is shed on a busy machine
	s = startH2(t, config, func(app *dunlin.App) {
		app.Get("/fill", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				for piece := make([]byte, 1<<20); r.Context().Err() == nil; {
					if _, err := w.Write(piece); err != nil {
						return err
					}
				}
				return nil
			})
		}).Critical()
		app.Get("/fresh", func(*dunlin.Request) dunlin.Response { wait(); return dunlin.Bytes("text/plain", make([]byte, size)) })
		app.Get("/shared", func(*dunlin.Request) dunlin.Response { wait(); return dunlin.Bytes("text/plain", shared) })
		app.Post("/body", func(r *dunlin.Request) dunlin.Response {
			wait()
			return dunlin.Bytes("text/plain", make([]byte, size))
		})
		app.Get("/small", func(*dunlin.Request) dunlin.Response { return dunlin.Text("small") })
	})
	return s, waiting, open
}

// Complete answers that wait for a full socket are charged from the time they are made, on any goroutine.
func TestAnswersThatWaitForTheSocketAreCharged(t *testing.T) {
	const all, size = 60, 200_000
	for _, c := range []struct {
		method, path string
		lies         int64 // bytes in memory
	}{{"GET", "/fresh", all * size}, {"POST", "/body", all * size}, {"GET", "/shared", size}} {
		t.Run(c.path[1:], func(t *testing.T) {
			s, waiting, open := mailServer(t, dunlin.Config{}, size)
			conn := newH2Conn(t, s.addr)
			for i := range uint32(all) {
				conn.request(2*i+1, c.method == "GET", c.method, c.path, "content-length", "0")
				if c.method == "POST" {
					_ = conn.frame(frameData, 1, 2*i+1)
				}
			}
			soon(t, "all wait", func() bool { return waiting.Load() == all })
			conn.stuff(s, 2*all+1, 1)
			before := s.app.Stats().Memory.Pending
			close(open)
			soon(t, "all are charged", func() bool { return s.app.Stats().Memory.Pending >= before+c.lies })
			soon(t, "all have returned", func() bool { return s.app.Stats().Actions.Working == 0 })
			if more := s.app.Stats().Memory.Pending - before; more > c.lies*4/3 {
				t.Errorf("%d bytes are charged for %d", more, c.lies)
			}
			_ = conn.Close()
		})
	}
}

// Answers that wait for full sockets of several connections are evicted when they fill the budget, and are freed at once.
// Others are served.
func TestAnswersThatWaitForTheSocketAreEvicted(t *testing.T) {
	for name, stuffed := range map[string]bool{"open windows": false, "full sockets": true} {
		t.Run(name, func(t *testing.T) {
			const conns, each, size = 3, 40, 1 << 20
			s, waiting, open := mailServer(t, dunlin.Config{Limits: dunlin.Limits{Memory: 64 << 20, MaxConcurrent: 1000}}, size)
			budget := s.app.Stats().Memory.Budget
			for i := range conns {
				c := newH2Conn(t, s.addr)
				for i := range uint32(each) {
					c.request(2*i+1, true, "GET", "/fresh")
				}
				soon(t, "all wait", func() bool { return waiting.Load() == int32(i+1)*each })
				if stuffed {
					c.stuff(s, 2*each+1, i+1)
				} else {
					c.openWindows()
				}
			}
			close(open)
			soon(t, "most are evicted, and free", func() bool {
				stats := s.app.Stats()
				return stats.Memory.Held <= budget+budget/8+size && stats.Shed["largest-holder"] >= conns*each/2
			})
			for range 20 {
				status, body := s.get("/small")
				want(t, status, body, 200, "small")
			}
		})
	}
}

// Bodies that the program owns, and which pairs of streams read slowly, do not exclude other clients. Either they fill the budget
// together, or a single body is larger than the budget.
func TestSharedBodiesDoNotExcludeClients(t *testing.T) {
	onLoop(t)
	t.Run("the budget", func(t *testing.T) { sharedBodiesDoNotExcludeClients(t, 200_000) })
	t.Run("larger than the budget", func(t *testing.T) { sharedBodiesDoNotExcludeClients(t, 20<<20) })
}

func sharedBodiesDoNotExcludeClients(t *testing.T, size int64) {
	const streams = 8
	var all [][]byte
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 64 << 20}}, func(app *dunlin.App) {
		app.Get("/{i}", func(r *dunlin.Request) dunlin.Response {
			var i int
			_, _ = fmt.Sscan(r.Param("i"), &i)
			return dunlin.Bytes("text/plain", all[i])
		}).Critical()
		app.Post("/upload", func(r *dunlin.Request) dunlin.Response {
			b, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(b)))
		})
	})
	budget := s.app.Stats().Memory.Budget
	for left := budget - 16<<10; left > 0; left -= size { // minus the charge for streams
		n := size
		if size < budget {
			n = min(left, size)
		}
		all = append(all, make([]byte, n))
	}
	type slow struct {
		*h2Conn
		streams int
	}
	var takers []slow
	for first := 0; first < len(all); first += streams {
		n := min(len(all)-first, streams)
		for range 2 {
			c := s.shut()
			for i := range n {
				c.request(uint32(2*i+1), true, "GET", fmt.Sprint("/", first+i))
			}
			for heads := 0; heads < n; {
				if kind, _, _, _ := c.read(); kind == frameHeaders {
					heads++
				}
			}
			takers = append(takers, slow{c, n})
		}
	}
	pending := s.app.Stats().Memory.Pending
	if size < budget && pending < budget*9/10 { // a body larger than the budget is not charged
		t.Fatalf("%d bytes are pending of %d", pending, budget)
	}
	for round := range 2 {
		for range 30 {
			if !s.uploads() {
				t.Errorf("round %d: a body that comes in pieces is refused", round)
			}
		}
		soon(t, "slow readers are counted", func() bool {
			m := s.app.Stats().Memory
			return len(m.Largest) == 0 || m.Largest[0].For > 700*time.Millisecond
		})
		for _, c := range takers {
			_ = c.frame(8, 0, 0, 0, 0, 2, 0)
			for i := range c.streams {
				_ = c.frame(8, 0, uint32(2*i+1), 0, 0, 2, 0)
			}
		}
	}
	if held := s.app.Stats().Memory.Held; held > budget+budget/8 {
		t.Errorf("%d bytes are held of %d", held, budget)
	}
}

// uploads sends a body in pieces, and reports whether it is answered with 200.
func (s *h2Server) uploads() bool {
	s.t.Helper()
	c := newH2Conn(s.t, s.addr)
	defer c.Close()
	c.request(1, false, "POST", "/upload", "content-length", "60000")
	for range 3 {
		_ = c.frame(frameData, 0, 1, make([]byte, 15_000)...)
		for ack := byte(0); ack == 0; {
			_ = c.frame(framePing, 0, 0, []byte("12345678")...)
			switch kind, flags, _, _ := c.read(); kind {
			case framePing:
				ack = flags & 1
			case frameHeaders, frameReset:
				return false
			}
		}
	}
	_ = c.frame(frameData, 1, 1, make([]byte, 15_000)...)
	for {
		var head [10]byte
		if _, err := io.ReadFull(c, head[:9]); err != nil {
			return false
		}
		payload := make([]byte, int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c, payload); err != nil || head[3] == frameReset {
			return false
		}
		if head[3] == frameHeaders {
			return bytes.IndexByte(payload[:min(len(payload), 6)], 0x88) >= 0 // :status 200, which a change of the table may precede
		}
	}
}
