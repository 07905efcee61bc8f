package looph2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Large answers that no client takes do not fill the memory: actions for more of them do not begin until there is room, and
// answers whose clients take nothing are evicted in the end.
func TestLargeAnswersWaitForRoom(t *testing.T) {
	onLoop(t)
	const size = 1 << 20
	var made atomic.Int64
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 64 << 20, QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/large", func(*dunlin.Request) dunlin.Response {
			made.Add(1)
			return dunlin.Bytes("", bytes.Repeat([]byte("x"), size))
		})
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
	})
	most := s.app.Stats().Memory.Budget / size
	if most < 2 || most > 40 {
		t.Fatalf("room for %d answers", most)
	}
	status, body := s.get("/large")
	want(t, status, body[:10], 200, "xxx") // from now on the route's estimate is known
	made.Store(0)
	const clients = 60
	for range clients {
		c := s.open() // takes the first window of the answer, and opens no more
		c.request(1, true, "GET", "/large")
	}
	soon(t, "requests wait", func() bool { return s.app.Stats().Memory.Waiting > 0 })
	// Answers whose clients take nothing may be evicted after a second, which may have passed.
	if n, ended := made.Load(), int64(s.app.Stats().Shed["largest-holder"]); n > most+1+ended {
		t.Errorf("%d answers were made, with room for %d, and %d clients were cut off", n, most, ended)
	}
	for range 5 {
		status, body := s.get("/quick")
		want(t, status, body, 200, "quick")
	}
	if m := s.app.Stats().Memory; m.Held > m.Budget+m.Budget/8+m.Ending {
		t.Errorf("%d bytes are held of %d, %d of them ending", m.Held, m.Budget, m.Ending)
	}
	status, body = s.get("/large") // a client that takes the answer gets it
	if status != 200 || len(body) != size {
		t.Errorf("%d with %d bytes: %.100q", status, len(body), body)
	}
}

// A request for a small answer is not queued with requests of the same route that wait for room for large ones.
func TestSmallAnswersDoNotWaitForLargeOnes(t *testing.T) {
	onLoop(t)
	s, begun := startCrowded(t, nothing, nothing, 0)
	before := begun.Load()
	status, body := s.get("/answer?small=1")
	if status != 200 || len(body) != crowdSmall {
		t.Errorf("%d with %d bytes: %.100q", status, len(body), body)
	}
	if line, after := crowd-before, begun.Load()-before; line > 0 && after > line/2 {
		t.Errorf("%d of %d that waited began before it", after, line)
	}
}

// A request for a small answer does not wait, by either protocol, for requests that may be small and block for long.
func TestSmallAnswersDoNotWaitForBlockingOnes(t *testing.T) {
	onLoop(t)
	entered, leave := make(chan bool, 2), make(chan bool)
	s, _ := startCrowded(t, func(r *dunlin.Request) {
		if r.Query("blocks") != "" {
			entered <- true
			<-leave
		}
	}, nothing, 0)
	old := *s
	old.Client = &http.Client{Transport: &http.Transport{}, Timeout: patience} // over HTTP/1.1
	defer old.CloseIdleConnections()
	both := []*h2Server{s, &old}
	var all sync.WaitGroup
	for i, s := range both {
		all.Go(func() {
			status, body := s.get(fmt.Sprintf("/answer?small=1&blocks=%d", i))
			if status != 200 || len(body) != crowdSmall {
				t.Errorf("one that blocks: %d with %d bytes: %.100q", status, len(body), body)
			}
		})
		<-entered
	}
	for i, s := range both {
		status, body := s.get(fmt.Sprintf("/answer?small=2&i=%d", i))
		if status != 200 || len(body) != crowdSmall {
			t.Errorf("%d with %d bytes: %.100q", status, len(body), body)
		}
	}
	close(leave)
	all.Wait()
}

func nothing(*dunlin.Request) {}

const (
	crowd      = 60       // clients
	crowdSmall = 20 << 10 // bytes
)

// startCrowded starts a server with large answers at /answer that fill its memory: a crowd of clients takes nothing of them, or
// waits for room. begun counts the large answers that have begun; the small ones at /answer?small=1 do not count.
func startCrowded(t *testing.T, small, large func(*dunlin.Request), timeout time.Duration) (s *h2Server, begun *atomic.Int64) {
	t.Helper()
	begun = new(atomic.Int64)
	s = startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 24 << 20, QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/answer", func(r *dunlin.Request) dunlin.Response {
			if r.Query("small") != "" {
				small(r)
				return dunlin.Bytes("", bytes.Repeat([]byte("x"), crowdSmall))
			}
			begun.Add(1)
			large(r)
			return dunlin.Bytes("", bytes.Repeat([]byte("x"), 1<<20))
		}).Timeout(timeout)
	})
	for range crowd {
		s.open().request(1, true, "GET", "/answer") // takes the first window of the answer, and opens no more
	}
	soon(t, "all have begun, or wait, or were cut off", func() bool {
		stats := s.app.Stats()
		return timeout > 0 && stats.Memory.Waiting > 0 ||
			begun.Load()+int64(stats.Memory.Waiting)+int64(stats.Shed["largest-holder"]+stats.Shed["no-memory"]) >= crowd
	})
	return s, begun
}

// A request whose time is over while it waits for room is answered then, and its action does not begin.
func TestTimeoutWhileWaitingForRoom(t *testing.T) {
	onLoop(t)
	const timeout = 300 * time.Millisecond
	var late atomic.Int64
	s, _ := startCrowded(t, nothing, func(r *dunlin.Request) {
		if until, ok := r.Context().Deadline(); !ok || time.Since(until) > timeout/2 {
			late.Add(1)
		}
	}, timeout)
	soon(t, "no request waits", func() bool { return s.app.Stats().Memory.Waiting == 0 })
	if n := late.Load(); n > 0 {
		t.Errorf("%d actions began whose time was over", n)
	}
}

// A request that is reset while it waits for room is not served: its answer would be made without room.
func TestResetWhileWaitingForRoom(t *testing.T) {
	onLoop(t)
	const size, streams = 1 << 20, 20
	var begun atomic.Int64
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 64 << 20, QueueTarget: -1}}, func(app *dunlin.App) {
		large := func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", bytes.Repeat([]byte("x"), size)) }
		app.Get("/large", large)
		app.Get("/other", func(r *dunlin.Request) dunlin.Response {
			begun.Add(1)
			return large(r)
		})
	})
	for _, path := range []string{"/large", "/other"} { // from now on the routes' estimates are known
		status, body := s.get(path)
		want(t, status, body[:10], 200, "xxx")
	}
	var holders []*h2Conn
	for range 60 {
		h := s.open()
		h.request(1, true, "GET", "/large")
		holders = append(holders, h)
	}
	soon(t, "requests wait", func() bool { return s.app.Stats().Memory.Waiting > 0 })
	c := newH2Conn(t, s.addr)
	for i := range uint32(streams) {
		c.request(2*i+1, true, "GET", "/other")
	}
	_ = c.frame(framePing, 0, 0, make([]byte, 8)...)
	c.wantFrame(framePing)
	for i := range uint32(streams) {
		_ = c.frame(frameReset, 0, 2*i+1, 0, 0, 0, 8)
	}
	_ = c.frame(framePing, 0, 0, make([]byte, 8)...)
	c.wantFrame(framePing)
	before := begun.Load()
	for _, h := range append(holders, c) {
		_ = h.Close()
	}
	s.stop()
	if n := begun.Load() - before; n > streams/4 { // except for requests that were granted room at that moment
		t.Errorf("%d actions of %d were begun for reset requests", n, streams)
	}
}

// Streamed answers that their clients do not take do not fill the memory either, however many are requested at once, and do not
// make another client of the same address wait for its turn.
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
	soon(t, "requests wait", func() bool { return s.app.Stats().Memory.Waiting > 0 })
	for range 2 {
		status, body := s.get("/quick")
		want(t, status, body, 200, "quick")
	}
	soon(t, "the reading client gets its answer", func() bool {
		status, body := s.get("/short")
		return status == 200 && len(body) == short
	})
	// Besides three quarters of the budget this includes the answers that 16 workers have begun at once, and the heads.
	if m := s.app.Stats().Memory; m.HeldPeak > m.Budget+m.Budget/2 {
		t.Errorf("%d bytes were held of %d", m.HeldPeak, m.Budget)
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

// Requests that may not wait for room, because too many do, are counted like all others that are refused because there is no
// room.
func TestRequestsBeyondWaitLimitAreCounted(t *testing.T) {
	onLoop(t)
	const size, conns, streams = 1 << 20, 10, 100
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 16 << 20, MaxConcurrent: 16, QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/large", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", bytes.Repeat([]byte("x"), size)) })
	})
	status, body := s.get("/large")
	want(t, status, body[:10], 200, "xxx") // from now on the route's estimate is known
	refused := func() uint64 { return s.app.Stats().Shed["no-memory"] }
	for i := 0; refused() == 0 && i < conns; i++ {
		c := s.open() // takes the first window of the answer, and opens no more
		for i := range uint32(streams) {
			c.request(2*i+1, true, "GET", "/large")
		}
	}
	soon(t, "requests are refused", func() bool { return refused() > 0 })
	shed := refused() // each refusal is counted before it is sent
	if n := s.app.Stats().Memory.Refused; n < shed {
		t.Errorf("%d were refused, and %d are counted", shed, n)
	}
}
