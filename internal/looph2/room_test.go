package looph2_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Large answers that no client reads fill the memory, at any limit. Small requests, of the same route and of others, are answered
// meanwhile, and the ceiling holds.
func TestSmallAnswersBesideUnreadOnes(t *testing.T) {
	onLoop(t)
	for _, limit := range []dunlin.ByteSize{24 << 20, 64 << 20, 256 << 20} {
		t.Run(fmt.Sprint(limit>>20, " MiB"), func(t *testing.T) {
			const clients = 64
			s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: limit, QueueTarget: -1}}, func(app *dunlin.App) {
				app.Get("/answer/{n:int}", func(r *dunlin.Request) dunlin.Response {
					n, err := strconv.Atoi(r.Param("n"))
					if err != nil {
						return dunlin.Error(err)
					}
					return dunlin.Bytes("", make([]byte, n))
				})
				app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
			})
			budget := s.app.Stats().Memory.Budget
			large := fmt.Sprint("/answer/", max(1<<20, 2*budget/clients))
			small := func() {
				t.Helper()
				status, body := s.get("/answer/20000")
				if status != 200 || len(body) != 20000 {
					t.Errorf("%d with %d bytes: got %.100q", status, len(body), body)
				}
				status, body = s.get("/quick")
				want(t, status, body, 200, "quick")
			}
			small()
			for range clients {
				s.open().request(1, true, "GET", large) // takes the first window of the answer, and opens no more
				small()
			}
			soon(t, "some are cut off", func() bool { return s.app.Stats().Shed["largest-holder"] > 0 })
			for range clients { // at once
				s.open().request(1, true, "GET", large)
			}
			for range 10 {
				small()
			}
			if m := s.app.Stats().Memory; m.Held > m.Budget+m.Budget/8+m.Ending {
				t.Errorf("%d bytes are held of %d, %d of them ending", m.Held, m.Budget, m.Ending)
			}
		})
	}
}

// Clients that read large answers at a moderate rate are all served, though the memory has room for a quarter of the answers at a
// time: the others wait before their answers are made.
func TestLargeAnswersWaitForThoseThatAreRead(t *testing.T) {
	onLoop(t)
	const clients, size, piece = 60, 1 << 20, 16 << 10
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 64 << 20, QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", make([]byte, size)) })
	})
	var all sync.WaitGroup
	for range clients {
		c := newH2Conn(t, s.addr)
		c.request(1, true, "GET", "/")
		all.Go(func() {
			pace := time.NewTicker(time.Second / 2 / (size / piece)) // 2 MiB/s
			defer pace.Stop()
			for n := 0; ; {
				var head [9]byte
				if _, err := io.ReadFull(c, head[:]); err != nil {
					t.Errorf("%d bytes: %v", n, err)
					return
				}
				length := binary.BigEndian.Uint32(head[:4]) >> 8
				if _, err := io.CopyN(io.Discard, c, int64(length)); err != nil {
					t.Errorf("%d bytes: %v", n, err)
					return
				}
				switch head[3] {
				case 0: // DATA
					if n += int(length); n == size {
						return
					}
					<-pace.C
					more := binary.BigEndian.AppendUint32(nil, length)
					_ = c.frame(8, 0, 0, more...)
					_ = c.frame(8, 0, 1, more...)
				case frameReset, frameGoAway:
					t.Errorf("cut off after %d bytes", n)
					return
				}
			}
		})
	}
	all.Wait()
	if shed := s.app.Stats().Shed["largest-holder"]; shed > 0 {
		t.Errorf("%d were evicted", shed)
	}
}

// Streamed answers that their clients do not take do not fill the memory either, however many are requested at once, and do not
// delay another client of the same address.
func TestStreamedAnswersDoNotFillMemory(t *testing.T) {
	onLoop(t)
	const size, short, conns, streams = 1 << 20, 100 << 10, 3, 100
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 24 << 20, MaxConcurrent: 16, QueueTarget: -1}}, func(app *dunlin.App) {
		for path, size := range map[string]int{"/stream": size, "/short": short} {
			app.Get(path, func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("", func(w io.Writer) error {
					piece := make([]byte, 32<<10)
					for left := size; left > 0; left -= len(piece) {
						if _, err := w.Write(piece[:min(left, len(piece))]); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
	})
	for range conns {
		c := s.open() // takes the first window of the answer, and opens no more
		for i := range uint32(streams) {
			c.request(2*i+1, true, "GET", "/stream")
		}
	}
	soon(t, "some are cut off", func() bool { return s.app.Stats().Shed["largest-holder"] > 0 })
	for range 2 {
		status, body := s.get("/quick")
		want(t, status, body, 200, "quick")
	}
	soon(t, "the reading client gets its answer", func() bool {
		status, body := s.get("/short")
		return status == 200 && len(body) == short
	})
	if m := s.app.Stats().Memory; m.Held > m.Budget+m.Budget/8+m.Ending {
		t.Errorf("%d bytes are held of %d, %d of them ending", m.Held, m.Budget, m.Ending)
	}
}

// Requests whose answers are large, but small compared with the room, do not wait for each other, however long they take.
func TestLargeAnswersRunConcurrently(t *testing.T) {
	onLoop(t)
	const size, streams = 200 << 10, 8
	entered, leave := make(chan bool, streams), make(chan bool)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 64 << 20}}, func(app *dunlin.App) {
		app.Get("/large", func(r *dunlin.Request) dunlin.Response {
			if r.Query("waits") != "" {
				entered <- true
				<-leave
			}
			return dunlin.Bytes("", bytes.Repeat([]byte("x"), size))
		})
	})
	s.open().request(1, true, "GET", "/large") // from now on the route's estimate is known
	soon(t, "a part is pending", func() bool { return s.app.Stats().Memory.HeldFor["output"] > 0 })
	c := s.open()
	for i := range uint32(streams) {
		c.request(2*i+1, true, "GET", "/large?waits=1")
	}
	for i := range streams {
		select {
		case <-entered:
		case <-time.After(patience):
			t.Fatalf("%d of %d have begun: got %+v", i, streams, s.app.Stats().Memory)
		}
	}
	close(leave)
}

// A long-lived answer does not hold the room reserved for a large one before it has sent anything.
func TestLongLivedAnswersReserveNothing(t *testing.T) {
	onLoop(t)
	const size, streams = 200 << 10, 8
	begun, leave := make(chan bool, streams), make(chan bool)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 64 << 20}}, func(app *dunlin.App) {
		app.Get("/feed", func(r *dunlin.Request) dunlin.Response {
			if r.Query("lasts") == "" {
				return dunlin.Bytes("", bytes.Repeat([]byte("x"), size))
			}
			return dunlin.SSE(func(e *dunlin.Events) error {
				e.Heartbeat(0)
				begun <- true
				<-leave
				return nil
			})
		})
	})
	first := s.open()
	first.request(1, true, "GET", "/feed") // from now on the route's estimate is known
	soon(t, "a part is pending", func() bool { return s.app.Stats().Memory.HeldFor["output"] > 0 })
	_ = first.Close()
	soon(t, "it is given back", func() bool { return s.app.Stats().Memory.HeldFor["output"] == 0 })
	c := s.open()
	for i := range uint32(streams) {
		c.request(2*i+1, true, "GET", "/feed?lasts=1")
	}
	for range streams {
		<-begun
	}
	soon(t, "nothing is reserved", func() bool { return s.app.Stats().Memory.HeldFor["output"] == 0 })
	close(leave)
}
