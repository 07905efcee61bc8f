package admission_test

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
					s.answer = 108 << 10
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

// An overload by those who ask for large answers is seen all the same, while they are more than are busy with one.
func TestOverloadByLargeAnswersIsShed(t *testing.T) {
	for _, service := range []time.Duration{80 * us, 400 * us} {
		for _, factor := range []float64{1.2, 2} {
			t.Run(fmt.Sprintf("%v at %vx", service, factor), func(t *testing.T) {
				t.Parallel()
				s := newSim(service, 4000)
				s.answer = 108 << 10
				capacity := 1 / service.Seconds()
				s.open(factor*capacity, 10*time.Second)
				share := s.refusal.Seconds() * (factor - 1) * capacity
				if goodput := float64(s.served) / capacity / 10; goodput < 0.97-share*1.3 {
					t.Errorf("goodput is %.3f of the capacity", goodput)
				}
				if p := percentile(s.waits, 0.99); p > 100*ms {
					t.Errorf("p99 of the answered is %v", p)
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
				s.shakes = true
				s.closedFrom(spacing, 8*time.Second, func(i int) time.Duration {
					if s.now > clients*spacing {
						return 0
					}
					return time.Duration(i*i%40) * 10 * ms
				})
				if s.refused > 0 {
					t.Errorf("%d requests were refused, %d served", s.refused, s.served)
				}
			})
		}
	}
}

// So it is if most of their first requests were answered while there was no queue.
func TestBusyClientsThatShookHandsAreNotShed(t *testing.T) {
	for _, opened := range []int{500, 0} {
		s := newSim(ms, 500)
		for i, c := range s.clients { // they ask again, within a second, after they have been busy for long
			c.last = 1
			c.at = 5*time.Second + time.Duration(i)*ms
			c.due, c.asked = c.at, true
		}
		s.now = 5 * time.Second
		s.control.Opened = opened
		n := 0
		for s.now < 7*time.Second {
			s.turn(func(c *simClient) {
				if n++; n%2 == 0 { // the others are busy with handshakes
					c.at, c.due, c.asked = s.now, s.now, true
				}
			})
		}
		if opened > 0 && s.refused > 0 {
			t.Errorf("%d requests were refused, %d served", s.refused, s.served)
		}
		if opened == 0 && s.refused == 0 {
			t.Error("nobody was refused of those who do not shake hands, so the test shows nothing")
		}
	}
}
