package overload_test

import (
	"fmt"
	"testing"
	"time"
)

// churn runs requests through a pool of connections, each of which begins with a handshake and ends after the time life. The
// rate is half of the server's capacity until the time begin, and then the given rate.
//
//go:norace
func (s *queueSim) churn(life, begin, length time.Duration, rate float64) {
	born := map[*simClient]time.Duration{}
	renew := func(c *simClient) {
		born[c], c.last = s.now, 0
	}
	for i, c := range s.clients {
		renew(c)
		born[c] = -life * time.Duration(i) / time.Duration(len(s.clients))
	}
	idle := append([]*simClient(nil), s.clients...)
	var backlog []time.Duration
	due := time.Duration(0)
	for s.now < length {
		for due <= s.now {
			backlog = append(backlog, due)
			if due < begin {
				due += 2 * s.service
			} else {
				due += time.Duration(1e9 / rate)
			}
		}
		for len(backlog) > 0 && len(idle) > 0 {
			c := idle[0]
			if s.now-born[c] >= life {
				renew(c)
			}
			c.due, c.at, c.asked = backlog[0], s.now, true
			backlog, idle = backlog[1:], idle[1:]
		}
		s.turn(func(c *simClient) { idle = append(idle, c) })
	}
}

// If connections are opened and closed all the time, those with a recent handshake do not hide an overload.
func TestOverloadBesideHandshakesIsShed(t *testing.T) {
	const begin, length = 5 * time.Second, 15 * time.Second
	for _, service := range []time.Duration{158 * us, 400 * us} {
		for _, factor := range []float64{1.2, 2} {
			t.Run(fmt.Sprintf("%v at %vx", service, factor), func(t *testing.T) {
				t.Parallel()
				s := newSim(service, 4000)
				capacity := 1 / service.Seconds()
				s.churn(2*time.Second, begin, length, factor*capacity)
				share := s.refusal.Seconds() * (factor - 1) * capacity
				could := capacity * (length - begin/2).Seconds()
				if goodput := float64(s.served) / could; goodput < 0.97-share*1.3 {
					t.Errorf("goodput is %.3f of what could be served", goodput)
				}
				if p := percentile(s.waits, 0.99); p > 100*ms {
					t.Errorf("p99 of the answered is %v", p)
				}
				if p := percentile(s.refusedWaits, 0.99); s.refused == 0 || p > 100*ms {
					t.Errorf("%d are refused, p99 is %v", s.refused, p)
				}
			})
		}
	}
}
