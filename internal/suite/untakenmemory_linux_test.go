package suite

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// untakenSize is the size in bytes of an answer that its client does not take: more than sockets do.
const untakenSize = 1 << 20

// untakenStreams is how many of the clients share a connection of HTTP/2.
const untakenStreams = 5

// registerUntaken adds a route for each way in which memory of answers waits for clients, and GET /quick. Actions of routes that block
// wait for open.
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
	app.Get("/std", dunlin.FromStd(std(untakenSize)))
	app.Mount("/mounted", std(4000))
	text := make([]byte, untakenSize)
	app.Get("/program", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("text/plain", text) })
}

// askUntaken asks for an answer of a route n times, by HTTP/1.1 or HTTP/2, and takes little or nothing of it.
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
		go func() { _, _ = io.Copy(io.Discard, c) }() // heads
		for i := range untakenStreams {
			c.get(uint32(2*i+1), path)
		}
	}
}

// Memory of answers that clients do not take is charged, however the answers are made, by each protocol. Package looph2 tests full sockets.
func TestUntakenAnswersAreCharged(t *testing.T) {
	if invariants.Enabled {
		t.Skip("builds with the race detector drop pooled buffers at random, so the heap says little")
	}
	const clients = 10
	// mostBeside is what a client takes that is not charged: goroutines, its own side of the connection, buffers of TLS.
	const mostBeside = 64 << 10
	onLoopAndTLS(t, func(t *testing.T) {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2, shut windows"} {
			for _, path := range []string{"/at-once", "/blocked", "/pieces", "/events", "/std", "/mounted", "/program"} {
				t.Run(protocol+path, func(t *testing.T) {
					open := make(chan struct{})
					app, addr, _ := StartLoop(t, dunlin.Config{H2C: true, QueueTarget: -1}, func(a *dunlin.App) { registerUntaken(a, open) })
					before := inMemory()
					askUntaken(t, addr, path, protocol, clients)
					if path == "/blocked" {
						Soon(t, "all are under way", func() bool { return app.Stats().Actions.InFlight >= clients })
					}
					close(open)
					least, held := int64(0), int64(0)
					if path == "/blocked" || path == "/at-once" && protocol == "HTTP/1.1" { // else some wait until others are taken
						least = clients * untakenSize
					}
					Soon(t, "all is charged", func() bool {
						more := inMemory() - before // first: more may be made
						held = app.Stats().Memory.Held
						return held >= least && held+clients*mostBeside >= more && clientsWait(app, clients)
					})
					if held > 2*clients*untakenSize {
						t.Errorf("%d bytes are charged", held)
					}
				})
			}
		}
	})
}

// inMemory is how many bytes the process holds that the collector manages.
func inMemory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// clientsWait reports whether the server works for so many clients, holds something for them, or does not read their connections.
func clientsWait(app *dunlin.App, clients int) bool {
	s := app.Stats()
	return max(s.Actions.InFlight, s.Memory.Holders, s.Memory.ReadPaused*untakenStreams) >= clients
}

// onLoopAndTLS runs f on the loop engine, in clear text and by TLS.
func onLoopAndTLS(t *testing.T, f func(t *testing.T)) {
	for _, name := range []string{"loop", byTLS} {
		on(t, name, dunlin.EngineLoop, func(t *testing.T, _ dunlin.Engine) { f(t) })
	}
}
