//go:build linux

package engine

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// newVisited returns a loop's driver and a connection of it whose peer is there.
func newVisited(t *testing.T) (*Driver, *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFD(int32(fds[0])); closeFD(int32(fds[1])) })
	l := newTurnSim(0).l
	l.epfd = -1
	l.wheel.init(tickAt(l.now))
	c := &Conn{loop: l, fd: int32(fds[0]), mark: 1}
	l.conns = []*Conn{c}
	return &Driver{engine: l.e, loop: l, parking: new(parking)}, c
}

// What a visit of nothing but the rest of an answer has sent keeps the peer busy from then on, and one in which nothing was
// sent leaves it as busy as it was, in and out of a queue.
func TestRestOfAnAnswerKeepsItsPeerBusy(t *testing.T) {
	const length = 100 << 10
	for _, saturated := range []bool{false, true} {
		d, c := newVisited(t)
		l := d.loop
		l.saturation.on = saturated
		d.begin(c)
		c.out = d.newOutQueue(c)
		c.out.push(&outNode{rest: make([]byte, length)})
		l.now += int64(time.Minute)
		if !d.visit(c) || c.out != nil {
			t.Fatalf("the answer is not sent: %+v", c.out)
		}
		until := c.mark
		if busy, want := between(stampAt(l.now), until), admission.Taking(length); busy < want-time.Millisecond || busy > want+time.Millisecond {
			t.Errorf("it is busy for %v, want %v", busy, want)
		}
		l.now += int64(50 * time.Millisecond)
		for i := range 4 {
			switch {
			case i%2 == 0:
				d.visit(c)
			case saturated:
				l.enqueue(c)
				l.visitNext(d)
			default:
				l.serveSoon(c)
				l.carryOver()
				l.visitNext(d)
			}
			if c.mark != until {
				t.Errorf("a visit of nothing moves the end of that by %v", between(until, c.mark))
			}
		}
		l.now += int64(time.Minute)
		if d.visit(c); c.mark != stampAt(l.now) {
			t.Errorf("a minute later it is busy for %v", between(stampAt(l.now), c.mark))
		}
	}
}

// Who has asked again was not busy any more with what it was sent before.
func TestWhoAsksAgainIsNotBusy(t *testing.T) {
	for _, test := range []struct {
		notes       Note
		begun, sent int
		busy        bool
	}{
		{0, 0, 0, true},
		{0, 0, 200, false},
		{Parts, 0, 0, true},
		{Parts, 0, 200, true}, // a reply of the protocol, or another answer
		{Parts, 1, 0, false},
		{Parts, 1, 200, false},
	} {
		d, c := newVisited(t)
		d.begin(c)
		c.Notes = test.notes
		until := stampAt(d.loop.now + int64(100*time.Millisecond))
		c.mark = until
		d.begun, d.sent = test.begun, test.sent
		d.loop.saturation.on = false
		d.noteVisit(c)
		if busy := c.mark == until; busy != test.busy {
			t.Errorf("%+v: its mark is %v from now", test, between(stampAt(d.loop.now), c.mark))
		}
	}
}
