package looph2_test

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Large answers that no client reads fill the memory, at any limit. Small requests, of the same route and of others, are answered
// meanwhile without waiting, and the ceiling holds.
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
					t.Errorf("%d with %d bytes: %.100q", status, len(body), body)
				}
				status, body = s.get("/quick")
				want(t, status, body, 200, "quick")
				if m := s.app.Stats().Memory; m.Waiting > 0 {
					t.Errorf("%d requests wait", m.Waiting)
				}
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
			if n := s.app.Stats().Shed["no-memory"]; n > 0 {
				t.Errorf("%d requests were refused", n)
			}
		})
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
			t.Fatalf("%d of %d have begun: %+v", i, streams, s.app.Stats().Memory)
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
