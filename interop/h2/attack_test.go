package h2_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// An attack costs a server more than its client.
type attack struct {
	name string
	// begin returns once all has been sent, or the connection has ended.
	begin func(p *peer, st *stage)
	// ends means that the server must close the connection, with one of these codes if it sends a GOAWAY. Otherwise the
	// connection may also continue.
	ends bool
}

const floods = 12_000

var attacks = []attack{
	{name: "rapid reset", begin: func(p *peer, _ *stage) {
		p.each(1500, func(id uint32) string { return get(id, "/stubborn") + frame(tReset, 0, id, u32(cancel)) })
	}},
	{name: "rapid reset of uploads", begin: func(p *peer, _ *stage) {
		p.each(1500, func(id uint32) string {
			return post(id, "/echo") + data(id, "abc", 0) + frame(tReset, 0, id, u32(cancel))
		})
	}},
	{name: "MadeYouReset by an increment of 0", begin: func(p *peer, _ *stage) {
		p.each(1500, func(id uint32) string { return get(id, "/stubborn") + frame(tWindow, 0, id, u32(0)) })
	}},
	{name: "MadeYouReset by too large a window", begin: func(p *peer, _ *stage) {
		p.each(1500, func(id uint32) string { return get(id, "/stubborn") + frame(tWindow, 0, id, u32(1<<31-1)) })
	}},
	{name: "MadeYouReset by DATA after the end", begin: func(p *peer, _ *stage) {
		p.each(1500, func(id uint32) string { return get(id, "/stubborn") + frame(tData, 0, id, "x") })
	}},
	{name: "MadeYouReset by its own dependency", begin: func(p *peer, _ *stage) {
		p.each(1500, func(id uint32) string { return get(id, "/stubborn") + frame(tPriority, 0, id, u32(id)+"x") })
	}},
	{name: "CONTINUATION without end", ends: true, begin: func(p *peer, _ *stage) {
		p.send(frame(tHeaders, endStream, 1, request("GET", "/hello")))
		piece := block(many(1000)...)
		for i := 0; i < 2000 && p.lasts(); i++ {
			p.send(frame(tContinuation, 0, 1, piece))
		}
	}},
	{name: "empty CONTINUATION", begin: func(p *peer, _ *stage) {
		p.send(frame(tHeaders, endStream, 1, request("GET", "/hello")))
		for i := 0; i < floods && p.lasts(); i++ {
			p.send(frame(tContinuation, 0, 1, ""))
		}
		p.send(frame(tContinuation, endHeaders, 1, ""))
	}},
	{name: "an HPACK bomb", begin: func(p *peer, _ *stage) {
		// One entry as large as the table, named thousands of times by a byte each (RFC 7541, section 7.3).
		entry := "\x40" + literal("bomb") + literal(strings.Repeat("x", 4000))
		for id := uint32(1); id < 20 && p.lasts(); id += 2 {
			p.send(headers(id, endStream, request("GET", "/hello")+entry+strings.Repeat("\xbe", 12_000)))
		}
	}},
	{name: "crumbs", begin: func(p *peer, _ *stage) {
		for id := uint32(1); id < 100 && p.lasts(); id += 2 {
			p.send(headers(id, endStream, request("GET", "/hello")+strings.Repeat("\xa0", 14_000))) // an empty cookie field, repeated
		}
	}},
	{name: "sizes of the dynamic table", begin: func(p *peer, _ *stage) {
		for id := uint32(1); id < 400 && p.lasts(); id += 2 {
			p.send(headers(id, endStream, "\x20\x3f\xe1\x1f"+request("GET", "/hello")+"\x40"+literal("bomb")+literal(strings.Repeat("x", 4000))))
		}
	}},
	{name: "PING", begin: func(p *peer, _ *stage) {
		p.beDeaf(true)
		p.flood(floods, func(int) string { return frame(tPing, 0, 0, "12345678") })
	}},
	{name: "SETTINGS", begin: func(p *peer, _ *stage) {
		p.beDeaf(true)
		p.flood(floods, func(i int) string { return frame(tSettings, 0, 0, setting(setTable, uint32(i%2)*4096)) })
	}},
	{name: "SETTINGS that move many windows", begin: func(p *peer, _ *stage) {
		for id := uint32(1); id < 160; id += 2 {
			p.send(get(id, "/stubborn"))
		}
		p.flood(2000, func(i int) string { return frame(tSettings, 0, 0, setting(setWindow, uint32(i%2)*65535)) })
	}},
	{name: "empty DATA", begin: func(p *peer, _ *stage) {
		p.send(post(1, "/length"))
		p.flood(floods, func(int) string { return frame(tData, 0, 1) })
	}},
	{name: "DATA that is all padding", begin: func(p *peer, _ *stage) {
		p.send(post(1, "/length"))
		p.flood(200, func(int) string { return frame(tData, padded, 1, "\xff"+strings.Repeat("\x00", 255)) })
	}},
	{name: "WINDOW_UPDATE", begin: func(p *peer, _ *stage) {
		p.send(get(1, "/stubborn"))
		p.flood(floods, func(i int) string { return frame(tWindow, 0, uint32(i%2), u32(1)) })
	}},
	{name: "PRIORITY", begin: func(p *peer, _ *stage) {
		p.flood(floods, func(i int) string { return frame(tPriority, 0, uint32(2*i+1), u32(uint32(2*i+3))+"\xff") })
	}},
	{name: "PRIORITY_UPDATE", begin: func(p *peer, _ *stage) {
		p.flood(floods, func(i int) string { return frame(tPriorityUpdate, 0, 0, u32(uint32(2*i+1))+"u=1") })
	}},
	{name: "frames of unknown types", begin: func(p *peer, _ *stage) {
		p.flood(floods, func(i int) string { return frame(tUnknown, 0, uint32(i), "") })
	}},
	{name: "GOAWAY", begin: func(p *peer, _ *stage) {
		p.flood(floods, func(int) string { return frame(tGoAway, 0, 0, u32(0)+u32(0)) })
	}},
	{name: "frames on streams that are over", begin: func(p *peer, _ *stage) {
		p.send(get(1, "/hello"))
		p.until(func() bool { return p.streams[1].over() })
		p.flood(floods, func(int) string { return frame(tWindow, 0, 1, u32(1)) })
	}},
	{name: "answers that are never read", begin: func(p *peer, _ *stage) {
		p.set(setting(setWindow, 0))
		p.each(100, func(id uint32) string { return get(id, []string{"/vast", "/stream/1000000"}[id/2%2]) })
		p.until(func() bool { return len(p.streams) > 50 }) // the heads of all streams, and of the answers to stalled clients
	}},
	{name: "a window of the connection that stays shut", begin: func(p *peer, _ *stage) {
		p.beQuiet()
		p.set(setting(setWindow, 1<<20))
		p.each(100, func(id uint32) string { return get(id, "/vast") })
		p.until(func() bool { return p.window == 0 })
	}},
	{name: "requests without end", begin: func(p *peer, _ *stage) {
		p.each(100, func(id uint32) string {
			return post(id, []string{"/echo", "/length", "/std/echo", "/unread"}[id/2%4]) + data(id, "x", 0)
		})
		p.ping("all here")
	}},
	{name: "half a frame", begin: func(p *peer, _ *stage) {
		p.send(post(1, "/echo"), head(tData, 0, 1, 16000)+"abc")
	}},
	{name: "half a field block", begin: func(p *peer, _ *stage) {
		p.send(frame(tHeaders, 0, 1, request("GET", "/hello")[:10]))
	}},
}

// An attack does not delay other clients, runs at most as many actions as streams are allowed, costs little memory and leaves
// no state. Its connection continues, or ends with a code that names the reason.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("attacks take a while")
	}
	var st *stage
	onEach(t, dunlin.Config{}, func(app *dunlin.App) { st = newStage(); st.register(app) }, func(t *testing.T, s *server) {
		if s.engine == dunlin.EngineStd && !s.secure {
			t.Skip("net/http reads the frames, as by TLS")
		}
		s.dial(t).ping("warm-up.")
		for _, a := range attacks {
			t.Run(a.name, func(t *testing.T) { a.run(t, s, st) })
			if t.Failed() {
				return // the remaining state would affect the next attack
			}
		}
	})
}

func (a attack) run(t *testing.T, s *server, st *stage) {
	st.shut()
	before := heap()
	other := s.dial(t)
	other.send(get(1, "/hello"))
	other.want(1, "200", "hello")
	p := s.dial(t)
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		a.begin(p, st)
	}()
	id, more := uint32(3), 5
	for over := false; !over || more > 0; id += 2 { // all the while, and then some
		other.send(get(id, "/hello"))
		other.want(id, "200", "hello")
		other.forget(id)
		select {
		case <-begun:
			over = true
			more--
		default:
		}
	}
	p.beDeaf(false)
	if grown := int64(heap() - before); grown > 32<<20 {
		t.Errorf("got %d KiB of additional memory", grown>>10)
	}
	p.mu.Lock()
	most := int64(p.server[setStreams])
	p.mu.Unlock()
	if n := st.most.Load(); n > most {
		t.Errorf("got %d concurrent actions with a limit of %d streams", n, most)
	}
	st.release()
	a.judge(t, p)
	p.close()
	other.close()
	eventually(t, "the end of the connections", func() bool { return s.Stats().Connections.Open <= 1 })
	wantNothingHeld(t, s)
	eventually(t, "release of the memory", func() bool { return int64(heap()-before) < 8<<20 })
}

// judge checks the state of the connection.
func (a attack) judge(t *testing.T, p *peer) {
	if a.ends {
		p.until(func() bool { return len(p.away) > 0 })
	}
	p.mu.Lock()
	ended := p.goneBy != "" || len(p.away) > 0
	for _, g := range p.away {
		switch g.code {
		case enhanceYourCalm, protocol, closed, compression, noError:
		default:
			t.Errorf("GOAWAY %v", p.away)
		}
	}
	p.mu.Unlock()
	if a.ends && !ended {
		t.Errorf("it goes on: got %s", p.state())
	}
}

// lasts reports whether the connection has not ended.
func (p *peer) lasts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.goneBy == "" && !p.stopped
}

// each sends the result of f for each of n streams, until the connection ends.
func (p *peer) each(n int, f func(id uint32) string) {
	p.flood(n, func(i int) string { return f(uint32(2*i + 1)) })
}

// flood sends the result of f n times, until the connection ends.
func (p *peer) flood(n int, f func(i int) string) {
	for i := 0; i < n && p.lasts(); {
		var some []string
		for ; i < n && len(some) < 100; i++ {
			some = append(some, f(i))
		}
		p.send(some...)
	}
	p.drain()
}

// drain waits until all is written, the connection has ended, or the server takes no more.
func (p *peer) drain() {
	p.until(func() bool { return p.out.Len() == 0 && !p.unsent || p.stopped || p.deaf })
}

// heap returns how much memory is in use, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
