package looph2_test

import (
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

const (
	largeAnswer = 100 << 10
	maxUntaken  = 2 << 20

	backlogPatience = time.Second
)

// backlogServer serves routes with large answers, one of which blocks; begun counts their actions.
func backlogServer(t *testing.T) (s *h2Server, begun *atomic.Int32) {
	t.Helper()
	onLoop(t)
	begun = new(atomic.Int32)
	text := strings.Repeat("x", largeAnswer)
	s = startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/large", func(*dunlin.Request) dunlin.Response { begun.Add(1); return dunlin.Bytes("text/plain", []byte(text)) })
		app.Post("/large", func(r *dunlin.Request) dunlin.Response {
			begun.Add(1)
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Bytes("text/plain", []byte(text))
		})
		app.Get("/small", func(*dunlin.Request) dunlin.Response { return dunlin.Text("small") })
	})
	return s, begun
}

// shut opens a connection with closed windows.
func (s *h2Server) shut() *h2Conn {
	c := newH2Conn(s.t, s.addr)
	_ = c.frame(frameSettings, 0, 0, 0, 4, 0, 0, 0, 0)
	return c
}

// openWindows opens the windows of all streams and of the connection.
func (c *h2Conn) openWindows() {
	_ = c.frame(frameSettings, 0, 0, 0, 4, 0, 1<<5, 0, 0)
	_ = c.frame(8, 0, 0, binary.BigEndian.AppendUint32(nil, 1<<30)...)
}

// Large answers that a client does not read wait in memory up to a limit. Small answers are sent in the meantime, and all other
// actions begin when there is room.
func TestLargeAnswersWaitForTheirClient(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		s, begun := backlogServer(t)
		c := s.shut()
		const all = 100
		ask := func(id uint32) {
			c.request(id, method == "GET", method, "/large")
			if method == "POST" { // with an unannounced length: the body is streamed
				_ = c.frame(frameData, 1, id)
			}
		}
		asked := time.Now()
		ask(1)
		soon(t, "the size of the first answer is recorded", func() bool { return s.app.Stats().Memory.Held >= largeAnswer })
		for i := range uint32(all - 1) {
			ask(2*i + 3)
		}
		c.request(2*all+1, true, "HEAD", "/small")
		c.wantHead(2*all + 1)
		if method == "GET" { // actions on workers may begin concurrently
			n, held := int(begun.Load()), s.app.Stats().Memory.Held
			late := int(time.Since(asked) / backlogPatience)     // one more begins after each backlogPatience
			most := maxUntaken + maxUntaken/4 + late*largeAnswer // on a slow machine a few go to workers, too
			if n > most/largeAnswer+1 || held > int64(most) {
				t.Errorf("got %d answers and %d bytes in memory", n, held)
			}
		}
		c.openWindows()
		got, ended := 0, 0
		for ended < all {
			var head [9]byte
			if _, err := io.ReadFull(c, head[:]); err != nil {
				t.Fatalf("%s: after %d answers: %v", method, ended, err)
			}
			n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
			if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
				t.Fatal(err)
			}
			if head[3] == frameReset {
				t.Fatalf("%s: stream %d was reset", method, binary.BigEndian.Uint32(head[5:]))
			}
			if head[3] == frameData {
				got += n
				ended += int(head[4] & 1)
			}
		}
		if got != all*largeAnswer {
			t.Errorf("%s: got %d bytes, want %d", method, got, all*largeAnswer)
		}
	}
}

// wantHead waits for the head of an answer.
func (c *h2Conn) wantHead(id uint32) {
	c.t.Helper()
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			c.t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			c.t.Fatal(err)
		}
		switch {
		case head[3] == frameGoAway:
			c.t.Fatal("the connection ended")
		case head[3] == frameHeaders && binary.BigEndian.Uint32(head[5:]) == id:
			return
		}
	}
}

// When a client resets waiting requests, they no longer count, and delay neither other requests nor a shutdown.
func TestWaitingRequestsAreReset(t *testing.T) {
	s, _ := backlogServer(t)
	c := s.shut()
	c.request(1, true, "GET", "/large")
	soon(t, "the size of the first answer is recorded", func() bool { return s.app.Stats().Memory.Held >= largeAnswer })
	id := uint32(3)
	for range 2 { // a client that resets more at once loses its connection
		first := id
		for range 90 {
			c.request(id, true, "GET", "/large")
			id += 2
		}
		for ; first < id; first += 2 {
			_ = c.frame(frameReset, 0, first, 0, 0, 0, 8)
		}
	}
	c.request(id, true, "HEAD", "/small")
	c.wantHead(id)
}

// If a client reads nothing, further actions begin one by one after a delay, because the client may need the last answer first.
func TestWaitingRequestsBeginAfterDelay(t *testing.T) {
	s, begun := backlogServer(t)
	c := s.shut()
	for i := range uint32(60) {
		c.request(2*i+1, true, "GET", "/large")
	}
	soon(t, "the permitted number of actions has begun", func() bool { return begun.Load() >= maxUntaken/largeAnswer-1 })
	was := begun.Load()
	soon(t, "two more have begun", func() bool { return begun.Load() >= was+2 })
}

// An answer far larger than the limit delays only requests of the same kind: other requests of its client and requests of other
// clients to the same route are not delayed.
func TestEnormousAnswerDoesNotDelayOthers(t *testing.T) {
	onLoop(t)
	var begun atomic.Int32
	enormous := strings.Repeat("x", 4*maxUntaken)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/{size}", func(r *dunlin.Request) dunlin.Response {
			begun.Add(1)
			switch r.Param("size") {
			case "enormous":
				return dunlin.Bytes("text/plain", []byte(enormous))
			case "large":
				return dunlin.Bytes("text/plain", []byte(enormous[:largeAnswer]))
			}
			return dunlin.Text("small")
		})
		app.Get("/other", func(*dunlin.Request) dunlin.Response { return dunlin.Empty() })
	})
	first := s.shut()
	first.request(1, true, "GET", "/enormous")
	soon(t, "the size of an answer is recorded", func() bool { return s.app.Stats().Memory.Held >= int64(len(enormous)) })
	second := s.shut()
	second.request(1, true, "GET", "/large")
	second.wantHead(1)
	for _, c := range []*h2Conn{first, second} {
		was := begun.Load()
		c.request(3, true, "GET", "/small")
		c.request(5, true, "HEAD", "/other")
		c.wantHead(5)
		if n := begun.Load() - was; n != 1 {
			t.Errorf("got %d begun small requests", n)
		}
	}
}
