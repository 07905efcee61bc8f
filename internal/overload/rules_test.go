package overload_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// A phase is a part of a case. Numbers of arrivals are per interval of 100 ms.
type phase struct {
	intervals                    int
	oldest                       time.Duration // wait of the oldest request
	from, to                     int           // the length of the queue, which changes linearly
	idle, first, returning, left int
	refuses                      bool // an overdue request is refused all the time
}

const connected = 1000

// TestRules tests the outcome of each rule in the package documentation. The target is 10 ms.
func TestRules(t *testing.T) {
	const late, intime = 20 * ms, 10 * ms
	grows := phase{intervals: 3, oldest: late, from: 0, to: 600, idle: 250, returning: 1000}
	for _, c := range []struct {
		rule   int
		name   string
		phases []phase
		want   bool // an overload
	}{
		{1, "nothing waits for longer than the target", []phase{{intervals: 5, oldest: intime, from: 0, to: 900, idle: 2000}}, false},
		{1, "few wait", []phase{{intervals: 5, oldest: late, from: 0, to: 63, idle: 2000}}, false},
		{2, "the queue stands for less than an interval", []phase{{intervals: 5, idle: 100}, {intervals: 1, oldest: late, from: 0, to: 900, idle: 2000}}, false},
		{2, "it grows from outside", []phase{grows}, true},
		{2, "it grows by clients that come again", []phase{{intervals: 3, oldest: late, from: 0, to: 600, returning: 2000}}, false},
		{2, "a seventh of the requests are from outside", []phase{{intervals: 3, oldest: late, from: 0, to: 600, idle: 300, returning: 1800}}, true},
		{2, "a tenth of them are", []phase{{intervals: 3, oldest: late, from: 0, to: 600, idle: 200, returning: 1800}}, false},
		{2, "it is long", []phase{{intervals: 40, oldest: 500 * ms, from: 900, to: 900, idle: 2000}}, false},
		{2, "it gets shorter", []phase{{intervals: 1, oldest: intime, from: 0, to: 900, idle: 900}, {intervals: 5, oldest: late, from: 900, to: 400}}, false},
		{2, "it doubles in 20 intervals", []phase{{intervals: 20, oldest: late, from: 200, to: 200, idle: 1000}, {intervals: 20, oldest: late, from: 200, to: 400, idle: 1000}}, true},
		{2, "it grows by a fifth in 20 intervals", []phase{{intervals: 20, oldest: late, from: 400, to: 400, idle: 1000}, {intervals: 20, oldest: late, from: 400, to: 480, idle: 1000}}, false},
		{2, "one client in five gives up", []phase{{intervals: 20, oldest: late, from: 900, to: 900, returning: 1000, left: 200}}, true},
		{2, "one client in ten gives up", []phase{{intervals: 20, oldest: late, from: 900, to: 900, returning: 1000, left: 100}}, false},
		{2, "all clients give up at once", []phase{{intervals: 20, oldest: late, from: 900, to: 900, returning: 1000}, {intervals: 1, oldest: late, from: 900, to: 900, left: 1000}}, false},
		{3, "the overload goes on while requests are refused", []phase{grows, {intervals: 100, oldest: late, from: 100, to: 100, refuses: true}}, true},
		{4, "nothing is refused for 20 intervals", []phase{grows, {intervals: 21, oldest: intime, from: 50, to: 50}}, false},
		{4, "half of all wait though requests are refused", []phase{grows, {intervals: 4, oldest: late, from: 900, to: 900, refuses: true}}, false},
		{4, "no overload follows for 20 intervals", []phase{grows, {intervals: 4, oldest: late, from: 900, to: 900, refuses: true}, {intervals: 10, oldest: intime}, grows}, false},
		{4, "then one does", []phase{grows, {intervals: 4, oldest: late, from: 900, to: 900, refuses: true}, {intervals: 21, oldest: intime}, grows}, true},
		{5, "a burst of new connections", []phase{{intervals: 10, oldest: late, from: 0, to: 900, first: 200}}, false},
		{5, "new connections keep coming", []phase{{intervals: 20, oldest: late, from: 0, to: 450, first: 200}}, true},
	} {
		q, now := overload.NewQueue(10*ms), time.Duration(1)
		for _, p := range c.phases {
			const steps = 20 // per interval
			n := p.intervals * steps
			for i := range n {
				share := func(perInterval int) int { return perInterval*(i+1)/steps - perInterval*i/steps }
				now += 100 * ms / steps
				q.Arrived(overload.Idle, share(p.idle))
				q.Arrived(overload.First, share(p.first))
				q.Arrived(overload.Returning, share(p.returning))
				for range share(p.left) {
					q.Abandoned()
				}
				q.Look(int64(now), p.oldest, p.from+(p.to-p.from)*i/n, connected)
				if p.refuses && q.Overloaded() && !q.Refuse(int64(now), late) {
					t.Errorf("%d, %s: a late request is not refused in an overload", c.rule, c.name)
				}
				if q.Refuse(int64(now), intime) {
					t.Errorf("%d, %s: a request is refused that is in time", c.rule, c.name)
				}
			}
		}
		if got := q.Overloaded(); got != c.want {
			t.Errorf("rule %d, %s: an overload: got %v, want %v", c.rule, c.name, got, c.want)
		}
	}
}

// A negative target refuses nothing.
func TestNoTarget(t *testing.T) {
	q := overload.NewQueue(-1)
	for i := range 1000 {
		q.Arrived(overload.Idle, 100)
		if q.Look(int64(i)*int64(ms), time.Second, 10*i, 100_000) || q.Refuse(int64(i)*int64(ms), time.Second) {
			t.Fatalf("after %d ms a request is refused", i)
		}
	}
}
