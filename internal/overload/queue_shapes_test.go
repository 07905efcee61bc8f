package overload_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

const us = time.Microsecond

// Clients that send their next request after the response are not an overload, regardless of their waiting times and their
// pauses: refusals would make no client faster. The round trip of the first four is longer than the target, as it is for
// clients on a busy machine.
func TestClosedLoopsAreNotShed(t *testing.T) {
	thinking := map[string]func(i int) time.Duration{
		"3 ms":        func(int) time.Duration { return 3 * ms },
		"up to 6 ms":  func(i int) time.Duration { return time.Duration(i*i%60) * 100 * us },
		"some, 20 ms": func(i int) time.Duration { return time.Duration(i%5/4) * 20 * ms },
		"in groups":   func(i int) time.Duration { return time.Duration(50-i%50) * 300 * us },
		"at once":     func(int) time.Duration { return 0 },
	}
	for name, think := range thinking {
		for _, service := range []time.Duration{100 * us, 300 * us} {
			t.Run(fmt.Sprintf("%s, %v", name, service), func(t *testing.T) {
				t.Parallel()
				for _, clients := range []int{64, 100, 1000} {
					for offset := range 5 { // the offset at which windows begin
						s := newSim(service, clients)
						s.control = overload.NewQueue(1 * ms)
						s.now = time.Duration(offset) * 500 * us
						s.closedFrom(s.control.Target()/time.Duration(clients), time.Second, think)
						if s.refused > 0 {
							t.Errorf("%d clients from %v on: got %d requests were refused, %d served", clients, time.Duration(offset)*500*us, s.refused, s.served)
						}
					}
				}
			})
		}
	}
}

// A thousand connections that send one request each, almost at the same time, are all answered, whether they are new or not.
func TestOneBurstIsNotShed(t *testing.T) {
	for _, target := range []time.Duration{1 * ms, 10 * ms} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("target %v, answered before: %v", target, before), func(t *testing.T) {
				for _, service := range []time.Duration{20 * us, 100 * us, 300 * us, 1 * ms} {
					for _, within := range []time.Duration{0, target, 4 * target, 8 * target} {
						for offset := range 5 {
							s := newSim(service, 1000)
							s.control = overload.NewQueue(target)
							s.now = 5*time.Second + time.Duration(offset)*target/2
							for i, c := range s.clients {
								c.at, c.asked = s.now+within*time.Duration(i)/1000, true
								c.due = c.at
								if before {
									c.last = 1
								}
							}
							for s.served+s.refused < 1000 {
								s.turn(func(*simClient) {})
							}
							if s.refused > 0 {
								t.Errorf("%v each, within %v: got %d were refused", service, within, s.refused)
							}
						}
					}
				}
			})
		}
	}
}

// A queue that does not grow is not an overload, regardless of the connections that join it and of the time of the check.
func TestQueueThatDoesNotGrow(t *testing.T) {
	for gap := 200 * us; gap < 12*ms; gap += 100 * us {
		q := overload.NewQueue(1 * ms)
		start := 339 * ms
		for range 100 {
			q.Arrived(overload.Idle, 1)
		}
		q.Look(int64(start), 0, 100, 100)
		step := 250 * us
		for now := start + step; now < start+time.Second; now += step {
			if now > start+5*ms {
				step = gap
			}
			for range 3 {
				q.Arrived(overload.Idle, 1) // three others were answered
			}
			if q.Look(int64(now), min(now-start, 30*ms), 100, 100) {
				t.Errorf("overloaded after %v, looking every %v", now-start, gap)
				break
			}
		}
	}
}

// An overload is also detected with a short target, no longer than a turn of the loop.
func TestOverloadIsShedByAShortTarget(t *testing.T) {
	for _, service := range []time.Duration{80 * us, 300 * us} {
		for _, factor := range []float64{1.2, 2} {
			t.Run(fmt.Sprintf("%v at %vx", service, factor), func(t *testing.T) {
				t.Parallel()
				s := newSim(service, 1000)
				s.control = overload.NewQueue(1 * ms)
				capacity := 1 / service.Seconds()
				s.open(factor*capacity, 3*time.Second)
				share := s.refusal.Seconds() * (factor - 1) * capacity
				if goodput := float64(s.served) / capacity / 3; goodput < 0.97-share*1.3 {
					t.Errorf("goodput is %.3f of the capacity", goodput)
				}
				if p := percentile(s.waits, 0.99); p > 100*ms {
					t.Errorf("p99 of the answered is %v", p)
				}
			})
		}
	}
}
