package suite

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// untakenSize is the size in bytes of a response that its client does not read. It exceeds the socket buffers.
const untakenSize = 1 << 20

// untakenStreams is the number of clients that share an HTTP/2 connection.
const untakenStreams = 5

// registerUntaken adds a route for each way in which responses hold memory for clients, and GET /quick. Actions of blocking
// routes wait for open.
func registerUntaken(app *dunlin.App, open <-chan struct{}) {
	fresh := func() dunlin.Response { return dunlin.Bytes("text/plain", make([]byte, untakenSize)) }
	write := func(piece int) func(w io.Writer) error {
		return func(w io.Writer) error {
			text := make([]byte, piece)
			for n := 0; n < untakenSize; n += piece {
				if _, err := w.Write(text); err != nil {
					return err
				}
			}
			return nil
		}
	}
	std := func(piece int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = write(piece)(w) })
	}
	app.Get("/quick", Text("quick"))
	app.Get("/at-once", func(*dunlin.Request) dunlin.Response { return fresh() })
	app.Get("/blocked", func(*dunlin.Request) dunlin.Response { <-open; return fresh() })
	app.Get("/stream", func(*dunlin.Request) dunlin.Response { return dunlin.Stream("text/plain", write(untakenSize)) })
	app.Get("/pieces", func(*dunlin.Request) dunlin.Response { return dunlin.Stream("text/plain", write(4000)) })
	app.Get("/events", func(r *dunlin.Request) dunlin.Response {
		return dunlin.SSE(func(e *dunlin.Events) error {
			data := strings.Repeat("x", 8<<10)
			for r.Context().Err() == nil {
				if err := e.Send(dunlin.Event{Data: data}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	app.HandleStd("GET", "/std", std(untakenSize))
	app.Mount("/mounted", std(4000))
	failed := func() error {
		return &dunlin.ProblemDetails{Status: 422, Detail: strings.Repeat("x", untakenSize), Cause: errors.New(strings.Repeat("y", untakenSize))}
	}
	app.Get("/problem", func(*dunlin.Request) dunlin.Response { return dunlin.Error(failed()) })
	app.Get("/problem/blocked", func(*dunlin.Request) dunlin.Response { <-open; return dunlin.Error(failed()) })
	app.Get("/problem/observed", func(r *dunlin.Request) dunlin.Response {
		r.OnAnswer(func(info *dunlin.AnswerInfo) { _ = info.Err() })
		return dunlin.Error(failed())
	})
	text := make([]byte, untakenSize)
	app.Get("/program", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("text/plain", text) })
}

// askUntaken requests a route n times, over HTTP/1.1 or HTTP/2, and reads little or nothing of the responses.
func askUntaken(t *testing.T, addr, path, protocol string, n int) {
	t.Helper()
	if protocol == "HTTP/1.1" {
		for range n {
			c := Dial(t, addr)
			if err := TCP(c).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			Send(t, c, Request("GET "+path))
		}
		return
	}
	for range n / untakenStreams {
		c := dialH2(t, addr)
		if err := TCP(c.Conn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if protocol == "HTTP/2, full sockets" {
			c.frame(frameSettings, 0, 0, []byte{0, 4, 1, 0, 0, 0})
			c.frame(frameWindow, 0, 0, []byte{1, 0, 0, 0})
		} else {
			go func() { _, _ = io.Copy(io.Discard, c) }() // reads the heads
		}
		for i := range untakenStreams {
			c.get(uint32(2*i+1), path)
		}
	}
}

// The memory of unread responses is charged, however the responses are made, by each protocol.
func TestUntakenResponsesAreCharged(t *testing.T) {
	if invariants.Enabled {
		t.Skip("builds with the race detector drop pooled buffers at random, so the heap says little")
	}
	const clients = 10
	// mostBeside bounds the uncharged memory of a client: goroutines, its own side of the connection, TLS buffers.
	const mostBeside = 64 << 10
	// mostOfServer bounds the buffers that loops and workers allocate on first use: output 192 KB, input 144 KB, TLS records
	// 128 KB, and pooled pieces of a few clients.
	const mostOfServer = 1 << 20
	onLoopAndTLS(t, func(t *testing.T) {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2, shut windows", "HTTP/2, full sockets"} {
			for _, path := range []string{"/at-once", "/blocked", "/stream", "/pieces", "/events", "/std", "/mounted", "/program", "/problem", "/problem/blocked", "/problem/observed"} {
				t.Run(protocol+path, func(t *testing.T) {
					open := make(chan struct{})
					app, addr, _ := StartLoop(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{QueueTarget: -1}}, func(a *dunlin.App) { registerUntaken(a, open) })
					before := inMemory()
					askUntaken(t, addr, path, protocol, clients)
					if strings.HasSuffix(path, "/blocked") {
						Soon(t, "all are under way", func() bool { return app.Stats().Actions.InFlight >= clients })
					}
					close(open)
					least, held := int64(0), int64(0)
					if strings.HasSuffix(path, "/blocked") || path == "/at-once" && protocol == "HTTP/1.1" { // otherwise some wait until others are read
						least = clients * untakenSize
					}
					Soon(t, "all is charged", func() bool {
						more := inMemory() - before // measured first, since more may be allocated
						held = app.Stats().Memory.Held
						return held >= least && held+clients*mostBeside+mostOfServer >= more && clientsWait(app, clients)
					})
					if held > 2*clients*untakenSize {
						t.Errorf("%d bytes are charged", held)
					}
				})
			}
		}
	})
}

// A slice that a handler writes is charged in full until the client has granted its last byte: it stays in memory as long.
func TestPartlyTakenWritesAreCharged(t *testing.T) {
	onLoopAndTLS(t, func(t *testing.T) {
		for _, path := range []string{"/stream", "/std"} {
			t.Run(path[1:], func(t *testing.T) {
				app, addr, _ := StartLoop(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{QueueTarget: -1}}, func(a *dunlin.App) { registerUntaken(a, nil) })
				c := dialH2(t, addr)
				c.get(1, path)
				const taken = untakenSize * 7 / 8
				c.grant(1, taken)
				for got := 0; got < taken; {
					if kind, _, _, n := c.next(); kind == frameData {
						got += n
					}
				}
				if held := app.Stats().Memory.Held; held < untakenSize {
					t.Errorf("%d bytes are charged of a slice of %d", held, untakenSize)
				}
				c.grant(1, untakenSize-taken)
				Soon(t, "nothing is charged", func() bool { return app.Stats().Memory.Held == 0 })
			})
		}
	})
}

// inMemory returns the bytes of the heap in use.
func inMemory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// clientsWait reports whether the server works for this number of clients, holds memory for them, or does not read their
// connections.
func clientsWait(app *dunlin.App, clients int) bool {
	s := app.Stats()
	return max(s.Actions.InFlight, s.Memory.Holders, s.Memory.ReadPaused*untakenStreams) >= clients
}

// onLoopAndTLS runs f on the loop engine, in clear text and over TLS.
func onLoopAndTLS(t *testing.T, f func(t *testing.T)) {
	for _, a := range []Adapter{loop, loopOverTLS} {
		a.On(t, func(t *testing.T, _ dunlin.Engine) { f(t) })
	}
}
