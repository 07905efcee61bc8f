package topic

import (
	"slices"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// An audience has the subscribers of a topic on one event loop, or all subscribers without a loop. Publish marks the audiences, and each
// loop wakes its subscribers. A subscriber then sends all messages after its position, so that many messages need one wake-up.
type audience struct {
	log    *log
	loop   exchange.Loop // nil for none
	subs   []*sub
	marked bool // a call of run is scheduled
	job    func()
}

// mark schedules a call of run, unless one is scheduled. log.mu is held.
func (g *audience) mark() {
	if g.marked {
		return
	}
	g.marked = true
	if g.loop == nil {
		go g.job()
	} else {
		g.loop.Call(g.job)
	}
}

// run wakes the subscribers. The loop calls it, if there is one.
func (g *audience) run() {
	l := g.log
	l.mu.Lock()
	defer l.mu.Unlock()
	g.marked = false
	for _, s := range g.subs {
		f := s.feed
		if f.held.Load() {
			// The client accepts no output. The connection continues without a wake-up when the client accepts output again.
			if l.set.Slow != Cut || !s.missed() {
				continue
			}
			f.cut.Store(true)
		}
		if g.loop == nil {
			f.client.Wake()
		} else {
			f.client.WakeHere()
		}
	}
}

// enter adds a subscriber at the position from; fresh is for a new client. hub.mu is held.
func (l *log) enter(f *feed, from uint64, fresh bool) *sub {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &sub{feed: f, log: l, audience: l.audienceOf(f.client.Loop())}
	s.at.Store(from)
	if fresh {
		s.restart()
	}
	s.index = len(s.audience.subs)
	s.audience.subs = append(s.audience.subs, s)
	l.last.Store(time.Now().Unix())
	return s
}

// audienceOf returns the audience of a loop. l.mu is held.
func (l *log) audienceOf(loop exchange.Loop) *audience {
	for _, g := range l.audiences {
		if g.loop == loop {
			return g
		}
	}
	g := &audience{log: l, loop: loop}
	g.job = g.run
	l.audiences = append(l.audiences, g)
	return g
}

// leave removes the subscriber, and the log if it then has neither subscribers nor messages. feed.mu is held.
func (s *sub) leave() {
	h, l := s.log.hub, s.log
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.remove(s) {
		h.drop(l)
	}
}

// remove implements leave. It reports whether the log has neither subscribers nor messages.
func (l *log) remove(s *sub) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := s.audience
	last := len(g.subs) - 1
	moved := g.subs[last]
	g.subs[s.index], moved.index = moved, s.index
	g.subs[last] = nil
	g.subs = g.subs[:last]
	if last == 0 {
		l.audiences = slices.DeleteFunc(l.audiences, func(other *audience) bool { return other == g })
	}
	l.last.Store(time.Now().Unix())
	return len(l.audiences) == 0 && len(l.entries) == 0 // and no members, since each has an entry
}

// subscribers returns the number of subscribers.
func (l *log) subscribers() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.audiences {
		n += len(g.subs)
	}
	return n
}

// used reports whether the log has subscribers or members.
func (l *log) used() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.audiences) > 0 || len(l.members) > 0
}

// missedSince reports whether a message after an offset was dropped.
func (l *log) missedSince(offset uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return offset < l.floor
}
