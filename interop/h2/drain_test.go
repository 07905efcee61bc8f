package h2_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A drain sends GOAWAY and answers all requests that have begun. A request that is too late has a higher stream ID than the
// last GOAWAY, so its client may retry it.
func TestDrain(t *testing.T) {
	t.Parallel()
	var st *stage
	onEach(t, dunlin.Config{}, func(app *dunlin.App) { st = newStage(); st.register(app) }, func(t *testing.T, s *server) {
		p, other := s.dial(t), s.dial(t)
		p.send(get(1, "/hold"), post(3, "/echo"))
		await(t, "the action", st.begun)
		other.ping("are you?")
		stopped := make(chan struct{})
		go func() { s.stop(); close(stopped) }()
		p.must("GOAWAY", func() bool { return len(p.away) > 0 })
		id := uint32(5)
		for ; id < 25; id += 2 {
			p.send(get(id, "/hello")) // crosses with it
		}
		p.body(3, "abcd", endStream)
		p.want(3, "200", "abcd")
		st.release()
		p.want(1, "200", "held")
		p.until(func() bool { return false }) // the server closes the connection
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.goneBy == "" {
			t.Fatal("the connection is still open")
		}
		last := p.away[len(p.away)-1]
		if last.code != noError {
			t.Errorf("GOAWAY %v", p.away)
		}
		for i := uint32(1); i < id; i += 2 {
			if i <= last.last && !p.streams[i].over() {
				t.Errorf("stream %d was lost: got %v, GOAWAY %v", i, p.streams[i], p.away)
			}
			if i > last.last && p.streams[i] != nil && p.streams[i].status != "" {
				t.Errorf("stream %d was answered, GOAWAY %v", i, p.away)
			}
		}
		await(t, "the end of Shutdown", stopped)
		other.until(func() bool { return false })
		if other.goneBy == "" || len(other.away) == 0 || other.away[0].code != noError {
			t.Errorf("idle connection: got %s", other.state())
		}
	})
}

// A connection without requests ends with GOAWAY.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	st := newStage()
	onEach(t, dunlin.Config{Timeouts: dunlin.Timeouts{Idle: 50 * time.Millisecond}}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.send(get(1, "/hello"))
		p.want(1, "200", "hello")
		p.until(func() bool { return false })
		if p.goneBy == "" || len(p.away) == 0 || p.away[0].code != noError || p.away[len(p.away)-1].last != 1 {
			t.Errorf("got %s", p.state())
		}
		eventually(t, "the end of the connection", func() bool { return s.Stats().Connections.Open == 0 })
	})
}

// Requests are not idleness.
func TestBusyIsNotIdle(t *testing.T) {
	t.Parallel()
	st := newStage()
	onEach(t, dunlin.Config{Timeouts: dunlin.Timeouts{Idle: 20 * time.Millisecond}}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.send(get(1, "/hold"))
		await(t, "the action", st.begun)
		idle := s.dial(t)
		idle.until(func() bool { return false }) // is over long after the timeout
		if idle.goneBy == "" {
			t.Error("the idle connection did not end")
		}
		p.ping("still on")
		if len(p.away) != 0 {
			t.Errorf("busy connection ended: %v", p.away)
		}
		p.send(frame(tReset, 0, 1, u32(cancel)))
		await(t, "the end of the action", st.ended)
	})
}

// A connection that has carried as many requests as it may ends when they are answered.
func TestRequestsPerConnection(t *testing.T) {
	t.Parallel()
	st := newStage()
	onEach(t, dunlin.Config{Limits: dunlin.Limits{MaxRequestsPerConnection: 5}}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		for id := uint32(1); id <= 9; id += 2 {
			p.send(get(id, "/hello"))
		}
		p.until(func() bool { return false })
		if p.goneBy == "" || len(p.away) == 0 || p.away[0].code != noError {
			t.Errorf("got %s", p.state())
		}
		for id := uint32(1); id <= 9; id += 2 {
			if a := p.streams[id]; a == nil || a.String() != "200" {
				t.Errorf("stream %d: got %v", id, a)
			}
		}
	})
}

// PING is answered in turn, with its own data.
func TestPings(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		for i := range 50 {
			p.send(frame(tPing, 0, 0, fmt.Sprintf("%08d", i)))
		}
		p.ping("the last")
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, word := range p.pongs[:len(p.pongs)-1] {
			if word != fmt.Sprintf("%08d", i) {
				t.Errorf("reply %d: got %q", i, word)
			}
		}
	})
}
