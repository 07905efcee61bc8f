//go:build linux

package engine

import (
	"log/slog"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// A turnSim is a saturated loop without sockets, on a clock of its own. Its queues hold connections of parts, and each request
// takes 0.3 ms.
type turnSim struct {
	l     *loop
	conns []*Conn
	has   map[*Conn]int // requests that have arrived and are not begun
	next  int
}

const simService = int64(300 * time.Microsecond)

func newTurnSim(conns int) *turnSim {
	e := &Engine{cfg: Config{QueueTarget: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}}
	s := &turnSim{l: &loop{e: e, now: int64(time.Hour)}, has: map[*Conn]int{}}
	s.l.saturation.on, s.l.ready = true, s.l.now
	s.l.saturation.control = overload.NewQueue(e.cfg.QueueTarget)
	for i := range conns {
		s.conns = append(s.conns, &Conn{slot: int32(i), Notes: Parts, mark: 1})
	}
	s.l.count.Store(int32(conns))
	return s
}

// ask adds n requests, on one connection after another.
func (s *turnSim) ask(n int) {
	for range n {
		s.has[s.conns[s.next%len(s.conns)]]++
		s.next++
	}
}

// turn simulates a turn of the loop with one connection. It returns that connection, and the numbers of requests served and
// refused.
func (s *turnSim) turn() (c *Conn, served, refused int) {
	l, began := s.l, s.l.now
	for _, c := range s.conns {
		if s.has[c] > 0 {
			l.enqueue(c)
		}
	}
	l.checkQueue()
	if l.waiting() == 0 {
		l.now += int64(time.Millisecond)
		return nil, 0, 0
	}
	q := &l.queue
	since := q.since[q.at]
	c = q.pop()
	c.queued = false
	c.Notes |= Parts // known now at the latest
	n := s.has[c]
	s.has[c] = 0
	if l.saturation.control.Refuse(l.now, between(since, stampAt(l.now))) {
		refused = n
		l.now += int64(n) * 8000
	} else {
		served = n
		l.now += int64(n) * simService
	}
	l.asked(c, n)
	c.mark = stampAt(l.now) // on this clock
	l.n, l.polls = 1, 1
	l.saturate(began)
	return c, served, refused
}

// Requests of a few connections with many streams each are judged like those of many connections.
func TestStreamsAreShed(t *testing.T) {
	for _, conns := range []int{8, 32, 200} {
		s := newTurnSim(conns)
		served, refused, asked := 0, 0, 0
		start := s.l.now
		for s.l.now < start+int64(3*time.Second) {
			due := int(2 * (s.l.now - start) / simService) // twice the capacity
			s.ask(due - asked)
			asked = due
			_, a, b := s.turn()
			served, refused = served+a, refused+b
		}
		if refused == 0 {
			t.Errorf("%d connections: nothing was refused, %d served of %d", conns, served, asked)
		}
		if goodput := float64(served) * float64(simService) / float64(s.l.now-start); goodput < 0.9 {
			t.Errorf("%d connections: goodput is %.2f of what could be served", conns, goodput)
		}
	}
}

// Streams that send their next request after an answer, on the same connections, are not an overload. It does not matter whether
// the loop sees the request at once, or after it has served another connection for longer than the target.
func TestRepeatedStreamsAreNotShed(t *testing.T) {
	for _, conns := range []int{1, 8, 32, 200} {
		for _, streams := range []int{100, 800, -100, -800} {
			s := newTurnSim(conns)
			for _, c := range s.conns { // the connections are new
				c.Notes, c.mark = 0, 0
			}
			s.ask(max(streams, -streams))
			var before *Conn
			again := 0
			for end := s.l.now + int64(3*time.Second); s.l.now < end; {
				c, served, refused := s.turn()
				if streams < 0 {
					c, before = before, c
					served, again = again, served
				}
				if refused > 0 {
					t.Errorf("%d streams of %d connections: got %d were refused", streams, conns, refused)
					break
				}
				s.has[c] += served
			}
		}
	}
}

// A connection that was served out of turn, or is closed, does not hide how long the next one has waited.
func TestQueueSkipsClosedConnections(t *testing.T) {
	s := newTurnSim(3)
	s.ask(3)
	for _, c := range s.conns {
		s.l.enqueue(c)
	}
	s.conns[0].slot = -1
	s.conns[1].state.Store(closing)
	s.l.now += int64(5 * time.Millisecond)
	if got := s.l.oldest(); got < 4*time.Millisecond {
		t.Errorf("the oldest has waited %v", got)
	}
}

// A connection that is ready after a long turn may have become ready at any time in it.
func TestQueueTimeAfterLongTurn(t *testing.T) {
	s := newTurnSim(1)
	l := s.l
	for _, on := range []bool{false, true} {
		l.saturation.on = on
		began := l.now
		l.now += int64(20 * time.Millisecond)
		l.n, l.polls = 1, 1
		l.saturate(began)
		if !l.saturation.on || l.now-l.ready != int64(10*time.Millisecond) {
			t.Errorf("saturated %v, marked %v ago", l.saturation.on, time.Duration(l.now-l.ready))
		}
		l.polls = 2 // it had to wait for input
		l.saturate(began)
		if l.ready != l.now {
			t.Errorf("what has just come is marked %v ago", time.Duration(l.now-l.ready))
		}
	}
}

// A request counts with the time since the latest answer on its connection. A handshake is not a request.
func TestQueueTimeSinceLatestAnswer(t *testing.T) {
	l := newTurnSim(0).l
	l.saturation.control = overload.NewQueue(10 * time.Millisecond)
	for _, test := range []struct {
		mark uint32
		want overload.Origin
	}{
		{0, overload.First},
		{stampAt(l.now), overload.Returning},
		{stampAt(l.now - int64(499*time.Millisecond)), overload.Returning},
		{stampAt(l.now - int64(501*time.Millisecond)), overload.Idle},
		{stampAt(l.now - int64(time.Hour)), overload.Idle},
	} {
		if got := l.originOf(test.mark, l.now); got != test.want {
			t.Errorf("with mark %d it is %v, want %v", test.mark, got, test.want)
		}
	}
}
