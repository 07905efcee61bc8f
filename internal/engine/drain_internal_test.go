//go:build linux

package engine

import (
	"testing"
	"time"
)

// While the engine drains, a used connection has a moment for a last request, and a new one a longer time, however often the
// loop looks at it.
func TestDrainTimeForLastRequest(t *testing.T) {
	for name, test := range map[string]struct {
		notes Note
		most  time.Duration
		want  time.Duration
	}{
		"new": {0, 0, firstRequest}, "used": {Begun, 0, lastRequests},
		"new, in a short drain": {0, time.Second, time.Second}, "used, in a short drain": {Begun, time.Second, lastRequests},
		"used, in a very short drain": {Begun, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loop{e: new(Engine), now: int64(time.Minute)}
			l.e.lastRequestsLimit.Store(int64(test.most))
			l.wheel.init(tickAt(l.now))
			c := &Conn{loop: l, Notes: test.notes, deadline: deadlineTick(l.now, time.Minute)}
			l.conns = []*Conn{c}
			want := deadlineTick(l.now, test.want)
			for range 2 {
				l.closeSoon(c)
				if c.deadline != want || c.filed != want {
					t.Errorf("it ends at tick %d and is looked at in tick %d, want %d", c.deadline, c.filed, want)
				}
				l.now += int64(test.want / 2)
			}
		})
	}
}

// During a short drain a connection lingers for a shorter time, also one that lingers already.
func TestDrainLingerTime(t *testing.T) {
	for name, test := range map[string]struct{ most, want time.Duration }{
		"not draining": {0, lingerTime}, "long": {15 * time.Second, lingerTime}, "short": {500 * time.Millisecond, 250 * time.Millisecond},
	} {
		l := &loop{e: new(Engine), now: int64(time.Minute)}
		l.wheel.init(tickAt(l.now))
		c := &Conn{loop: l, flags: flagLingering}
		l.conns = []*Conn{c}
		l.linger(c)
		if want := deadlineTick(l.now, lingerTime); c.deadline != want || c.filed != want {
			t.Errorf("%s: before, it ends at tick %d and is looked at in tick %d, want %d", name, c.deadline, c.filed, want)
		}
		l.e.lastRequestsLimit.Store(int64(test.most))
		want := deadlineTick(l.now, test.want)
		l.linger(c)
		if c.deadline != want || c.filed != want {
			t.Errorf("%s: it ends at tick %d and is looked at in tick %d, want %d", name, c.deadline, c.filed, want)
		}
	}
}

// A client that has connected before the engine drains has as much time for its handshake as any other.
func TestDrainHandshakeTime(t *testing.T) {
	const timeout = 10 * time.Second
	e := &Engine{start: time.Now()}
	s := &secureConn{Conn: Conn{loop: &loop{e: e}, gen: genSecure}, tls: tlsState{on: &TLS{Timeout: timeout}}}
	c := &s.Conn
	for _, draining := range []bool{false, true} {
		e.draining.Store(draining)
		before := e.now()
		c.deadline = deadlineTick(before, timeout)
		if draining {
			c.deadline = deadlineTick(before, lastRequests) // set while it was idle
		}
		if until := c.handshakeUntil(); until < before+int64(timeout) {
			t.Errorf("draining %v: it has %v, want %v", draining, time.Duration(until-before), timeout)
		}
	}
}
