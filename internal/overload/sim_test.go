package overload_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

const ms = time.Millisecond

// A queueSim is a server with one CPU and its clients, with a virtual clock. It serves a queue in turns of a millisecond, as an
// event loop does.
type queueSim struct {
	control overload.Queue
	service time.Duration // of one request
	refusal time.Duration // of one refused request
	clients []*simClient
	now     time.Duration
	queue   []*simClient
	once    bool                                  // each request has a new connection
	lifo    bool                                  // a pool uses the connection that was idle for the shortest time
	stall   func(now time.Duration) time.Duration // CPU time that other processes use

	oldest   time.Duration // wait of the first request in the queue
	patience time.Duration // after this time a client closes; 0: never

	served, refused     int
	waits, refusedWaits []time.Duration // from the due time
}

type simClient struct {
	at     time.Duration // when its next request arrives, or arrived
	due    time.Duration // when that request was due
	asked  bool          // it has a request for the time at
	queued bool
	last   time.Duration // when it last got a response; 0: never
}

// turn runs one turn of the server and its clients; next gives an answered client its next request. It runs on one goroutine,
// and so often that the race detector would take most of the tests' time.
//
//go:norace
func (s *queueSim) turn(next func(c *simClient)) {
	now := s.now + 1 // 0 means no time
	for _, c := range s.clients {
		if !c.asked || c.queued || c.at > s.now {
			continue
		}
		if s.once || c.last == 0 {
			s.control.Arrived(overload.First, 1)
		} else {
			s.control.Arrived(s.control.OriginOf(c.at-c.last), 1)
		}
		c.queued = true
		c.at = s.now
		s.queue = append(s.queue, c)
	}
	var oldest time.Duration
	if len(s.queue) > 0 {
		oldest = s.oldest
		if s.queue[0] != nil {
			oldest = s.now - s.queue[0].at
		}
		s.oldest = oldest
	}
	s.control.Look(int64(now), oldest, len(s.queue), max(len(s.clients), len(s.queue)))
	if s.patience > 0 {
		for i, c := range s.queue {
			if c != nil && s.now > c.due+s.patience {
				s.control.Abandoned()
				s.queue[i] = nil // its service is wasted
				c.queued, c.asked, c.last = false, false, 0
				next(c)
			}
		}
	}
	end := s.now + ms
	if s.stall != nil {
		s.now += s.stall(s.now)
		end = max(end, s.now)
	}
	for len(s.queue) > 0 && s.now < end {
		c := s.queue[0]
		s.queue = s.queue[1:]
		if c == nil {
			if s.control.Overloaded() {
				s.now += s.refusal
			} else {
				s.now += s.service
			}
			continue
		}
		if s.control.Refuse(int64(now), time.Duration(now)-1-c.at) {
			s.now += s.refusal
			s.refused++
			s.refusedWaits = append(s.refusedWaits, s.now-c.due)
		} else {
			s.now += s.service
			s.served++
			s.waits = append(s.waits, s.now-c.due)
		}
		c.queued, c.asked, c.last = false, false, s.now
		next(c)
	}
	s.now = max(s.now, end)
}

func percentile(waits []time.Duration, p float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[int(float64(len(waits)-1)*p)]
}

func newSim(service time.Duration, clients int) *queueSim {
	s := &queueSim{service: service, refusal: 8 * time.Microsecond}
	s.control = overload.NewQueue(10 * ms)
	for range clients {
		s.clients = append(s.clients, new(simClient))
	}
	return s
}

// open runs requests at a constant rate through a pool of connections. A request without a free connection waits for one, and
// that time counts. Before the measurement it opens all connections and runs half of the server's capacity for some seconds.
func (s *queueSim) open(rate float64, length time.Duration) {
	idle := slices.Clone(s.clients)
	lifo := s.lifo
	s.lifo = false // each connection is used once
	s.run(&idle, 0.5/s.service.Seconds(), leadIn/2)
	s.lifo = lifo
	s.run(&idle, 0.5/s.service.Seconds(), leadIn/2)
	s.served, s.refused, s.waits, s.refusedWaits = 0, 0, nil, nil
	s.run(&idle, rate, length)
}

const leadIn = 3 * time.Second

// run generates requests at a rate for the given time.
func (s *queueSim) run(idle *[]*simClient, rate float64, length time.Duration) {
	var backlog []time.Duration
	begin, sent := s.now, 0
	due := func() time.Duration { return begin + time.Duration(float64(sent)/rate*1e9) }
	give := func(c *simClient) {
		c.due, c.at, c.asked = backlog[0], max(backlog[0], c.last), true
		backlog = backlog[1:]
	}
	for s.now < begin+length {
		for ; due() <= s.now; sent++ {
			backlog = append(backlog, due())
		}
		for len(backlog) > 0 && len(*idle) > 0 {
			at := 0
			if s.lifo {
				at = len(*idle) - 1
			}
			give((*idle)[at])
			*idle = slices.Delete(*idle, at, at+1)
		}
		for s.patience > 0 && len(backlog) > 0 && s.now > backlog[0]+s.patience {
			backlog = backlog[1:]
		}
		s.turn(func(c *simClient) {
			if len(backlog) == 0 {
				*idle = append(*idle, c)
				return
			}
			give(c)
			c.at = s.now
		})
	}
}

// closed runs clients that send their next request after a time to think.
func (s *queueSim) closed(length time.Duration, think func(i int) time.Duration) {
	s.closedFrom(20*time.Microsecond, length, think)
}

// closedFrom is closed for clients that connect one by one, at the given distance in time.
func (s *queueSim) closedFrom(distance, length time.Duration, think func(i int) time.Duration) {
	for i, c := range s.clients {
		c.at = s.now + time.Duration(i)*distance
		c.due, c.asked = c.at, true
	}
	n := 0
	for s.now < length {
		s.turn(func(c *simClient) {
			n++
			c.at = s.now + think(n)
			c.due, c.asked = c.at, true
		})
	}
}

func TestOverloadIsShed(t *testing.T) {
	for _, c := range []struct {
		clients int
		service time.Duration
	}{
		{2000, 80 * time.Microsecond}, {1000, 158 * time.Microsecond}, {1000, 400 * time.Microsecond},
		{8000, 80 * time.Microsecond}, {4000, 158 * time.Microsecond}, {4000, 400 * time.Microsecond},
	} {
		service, length := c.service, 10*time.Second
		lifo := c.clients < 4000
		for _, factor := range []float64{1.02, 1.2, 2, 2.5} {
			if lifo && factor < 1.2 {
				continue // it grows slowly, by connections that were idle
			}
			t.Run(fmt.Sprintf("%v for %d clients at %vx", service, c.clients, factor), func(t *testing.T) {
				t.Parallel()
				s := newSim(service, c.clients)
				s.lifo = lifo
				capacity := 1 / service.Seconds()
				s.open(factor*capacity, length)
				// The cost of refusals reduces the served requests, and the first interval is lost.
				share := s.refusal.Seconds() * (factor - 1) * capacity
				goodput := float64(s.served) / capacity / length.Seconds()
				if goodput < 0.97-share*1.3 {
					t.Errorf("goodput is %.3f of the capacity", goodput)
				}
				if p := percentile(s.waits, 0.99); p > 100*ms {
					t.Errorf("p99 of the answered is %v", p)
				}
				if p := percentile(s.refusedWaits, 0.99); p > 100*ms {
					t.Errorf("p99 of the refused is %v", p)
				}
			})
		}
	}
}

// If all connections wait before the queue has lasted an interval, the overload cannot be distinguished from a burst until
// clients give up.
func TestClientsThatGiveUp(t *testing.T) {
	s := newSim(80*time.Microsecond, 1000)
	s.patience = 2 * time.Second
	s.open(50_000, 4*time.Second)
	if s.refused == 0 {
		t.Error("nothing is refused while clients give up")
	}
}

// Clients whose handshakes take a second in total connect one after the other, and send requests meanwhile.
func TestBurstOfHandshakesIsNotShed(t *testing.T) {
	for _, spacing := range []time.Duration{300 * time.Microsecond, time.Millisecond} {
		for _, service := range []time.Duration{400 * time.Microsecond, time.Millisecond} {
			for _, think := range []time.Duration{0, 40 * ms} {
				t.Run(fmt.Sprintf("each %v, %v, %v", spacing, service, think), func(t *testing.T) {
					t.Parallel()
					s := newSim(service, 1000)
					s.closedFrom(spacing, 10*time.Second, func(i int) time.Duration { return think * time.Duration(i*i%8) / 8 })
					if s.refused > 0 {
						t.Errorf("%d requests were refused, %d served", s.refused, s.served)
					}
				})
			}
		}
	}
}

// Too many clients that open a connection for each request are refused.
func TestOverloadByNewConnectionsIsShed(t *testing.T) {
	s := newSim(400*time.Microsecond, 8000)
	s.once = true
	s.open(2*2500, 20*time.Second)
	if goodput := float64(s.served) / 2500 / 20; goodput < 0.9 {
		t.Errorf("goodput is %.3f of the capacity", goodput)
	}
	if p := percentile(s.refusedWaits, 0.5); s.refused == 0 || p > 100*ms {
		t.Errorf("%d are refused, half of them after %v", s.refused, p)
	}
}

func TestBurstIsNotShed(t *testing.T) {
	thinking := map[string]func(i int) time.Duration{
		"at once":   func(int) time.Duration { return 0 },
		"soon":      func(i int) time.Duration { return time.Duration(i%3000) * time.Microsecond },
		"on a whim": func(i int) time.Duration { return time.Duration(i) * time.Duration(i) % 40 * ms },
		"for long":  func(i int) time.Duration { return time.Duration(i) * time.Duration(i) % 40 * 40 * ms },
	}
	for name, think := range thinking {
		for _, service := range []time.Duration{8 * time.Microsecond, 80 * time.Microsecond, 158 * time.Microsecond, 1 * ms} {
			t.Run(fmt.Sprintf("%s, %v", name, service), func(t *testing.T) {
				t.Parallel()
				for _, clients := range []int{64, 1000, 3000} {
					s := newSim(service, clients)
					s.stall = func(now time.Duration) time.Duration { // other processes use the CPU
						if now/ms%331 == 7 {
							return 40 * ms
						}
						return 0
					}
					s.closed(10*time.Second, think)
					if s.refused > 0 {
						t.Errorf("%d clients: got %d requests were refused, %d served", clients, s.refused, s.served)
					}
				}
			})
		}
	}
}
