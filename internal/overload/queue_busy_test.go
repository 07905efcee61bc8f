package overload_test

import (
	"fmt"
	"testing"
	"time"
)

// busyClients runs clients on one machine, which processes their responses one after the other, each for the time take. Each
// client then sends its next request. A refusal takes an eighth of that time.
func (s *queueSim) busyClients(take, length time.Duration) {
	for i, c := range s.clients {
		c.at = s.now + time.Duration(i)*us
		c.due, c.asked = c.at, true
	}
	free, refused := s.now, s.refused
	for s.now < length {
		s.turn(func(c *simClient) {
			cost := take
			if s.refused > refused {
				cost, refused = take/8, s.refused
			}
			free = max(free, s.now) + cost
			c.at = free
			c.due, c.asked = c.at, true
		})
	}
}

// Clients that are busy with large responses are not an overload, even if clients and server are the slower side in turn: the
// queue grows because clients have received their responses.
func TestBusyClientsAreNotShed(t *testing.T) {
	const service = 90 * us
	for _, clients := range []int{250, 500, 1000} {
		for _, take := range []time.Duration{80 * us, 100 * us, 120 * us} {
			t.Run(fmt.Sprintf("%d, %v", clients, take), func(t *testing.T) {
				t.Parallel()
				for phase := 500 * ms; phase < 4*time.Second; phase *= 2 {
					s := newSim(service, clients)
					s.stall = func(now time.Duration) time.Duration { // other processes use two thirds of the server's CPU in some phases
						if now/phase%2 == 1 && now/ms%3 != 0 {
							return ms
						}
						return 0
					}
					s.busyClients(take, 10*time.Second)
					if s.refused > 0 {
						t.Errorf("busy for %v: got %d requests were refused, %d served", phase, s.refused, s.served)
					}
				}
			})
		}
	}
}

// Clients on one machine that do their handshakes one after the other are busy with them, and send more requests later.
func TestBusyClientsWithHandshakesAreNotShed(t *testing.T) {
	const clients = 1000
	for _, spacing := range []time.Duration{300 * us, 700 * us, ms} {
		for _, service := range []time.Duration{400 * us, ms} {
			t.Run(fmt.Sprintf("each %v, %v", spacing, service), func(t *testing.T) {
				t.Parallel()
				s := newSim(service, clients)
				s.closedFrom(spacing, 8*time.Second, func(i int) time.Duration {
					if s.now > clients*spacing {
						return 0
					}
					return time.Duration(i*i%40) * 7 * ms
				})
				if s.refused > 0 {
					t.Errorf("%d requests were refused, %d served", s.refused, s.served)
				}
			})
		}
	}
}
