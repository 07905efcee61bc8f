package overload_test

import (
	"fmt"
	"testing"
	"time"
)

// busyClients runs clients of one machine that takes their answers one after the other, each for so long, and has
// them ask again then. A refusal is taken in an eighth of that.
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

// Clients that are busy with large answers, of which now they and now the server are the slower ones, are no
// overload: what makes the queue longer is that they have got their answers.
func TestBusyClientsAreNotShed(t *testing.T) {
	const service = 90 * us
	for _, clients := range []int{250, 500, 1000} {
		for _, take := range []time.Duration{80 * us, 100 * us, 120 * us} {
			t.Run(fmt.Sprintf("%d, %v", clients, take), func(t *testing.T) {
				t.Parallel()
				for phase := 500 * ms; phase < 4*time.Second; phase *= 2 {
					s := newSim(service, clients)
					s.stall = func(now time.Duration) time.Duration { // others have two thirds of the server's processor for a while
						if now/phase%2 == 1 && now/ms%3 != 0 {
							return ms
						}
						return 0
					}
					s.busyClients(take, 10*time.Second)
					if s.refused > 0 {
						t.Errorf("busy for %v: %d requests were refused, %d served", phase, s.refused, s.served)
					}
				}
			})
		}
	}
}

// Clients of one machine that shake hands one after the other are busy with that, and ask for more when they have time.
func TestBusyClientsThatShakeHandsAreNotShed(t *testing.T) {
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
