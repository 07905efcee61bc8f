//go:build linux

package looph2

import (
	"slices"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// While a client keeps its windows closed, complete answers wait in memory, one for each of its streams. A connection may have
// maxUntaken bytes of them, not counting the largest. Beyond that, requests of routes whose answers have been large
// (Route.Pends) wait in the session's backlog until the client has taken some of the pending output. The largest answer does
// not count, so that everything else continues while the client downloads it slowly. An estimate counts for at most
// muchPromised, since the answers of the same route to other clients may have been far larger.
//
//	event ─▶ too much? ─no──▶ the action, here or on a worker
//	             └─yes─▶ backlog ──some output taken, or none for backlogPatience──▶ a worker
//
// A client may need the answer to its latest request first. So one more action begins after each backlogPatience even if the
// client takes nothing. A client that takes nothing at all is cut before many have begun (slow.go).

const (
	maxUntaken      = 2 << 20
	muchPromised    = maxUntaken / 8
	backlogPatience = int64(time.Second)
)

// A backlog holds the requests of a session that wait for its client. It belongs to the loop.
type backlog struct {
	line  []*stream // in order of arrival; elsewhere they count as waiting for a worker
	begun []*stream // streams that left the backlog and whose actions have not returned
	since int64     // when an action last began, or the first stream arrived
}

// mustWaitInBacklog reports whether a request of the route must wait in the backlog before its action begins.
func (s *session) mustWaitInBacklog(own *stream, route *exchange.Route) bool {
	pends := route.Pends.Load()
	if s.untaken == 0 || pends <= memory.Small || s.untaken+min(pends, muchPromised) <= maxUntaken {
		return false
	}
	return !route.Critical && own.kind != headOnly && s.AccountSet() != nil && s.besideLargest()+min(pends, muchPromised) > maxUntaken
}

// besideLargest returns s.untaken without the largest answer.
func (s *session) besideLargest() int64 {
	largest := int64(0)
	for st := range s.h2.Streams {
		if own, _ := st.Owner.(*stream); own != nil {
			largest = max(largest, own.untaken)
		}
	}
	return s.untaken - largest
}

// putOff adds a stream that is ready for a worker to the backlog.
func (s *session) putOff(own *stream) {
	s.awaitWorker(own, postpone)
	if s.backlog == nil {
		s.backlog = &backlog{since: s.d.Now()}
	}
	s.backlog.line = append(s.backlog.line, own)
}

// goOn begins the actions of the backlog for whose answers there is room.
func (s *session) goOn() {
	b := s.backlog
	if b == nil {
		return
	}
	s.mu.Lock()
	b.begun = slices.DeleteFunc(b.begun, (*stream).settled)
	s.mu.Unlock()
	beside := s.besideLargest()
	for len(b.line) > 0 {
		own, now := b.line[0], s.d.Now()
		pends := own.route.Pends.Load()
		promised := int64(len(b.begun)+1) * pends
		if beside+promised > maxUntaken && s.untaken+promised > pends && now-b.since < backlogPatience {
			return
		}
		b.line = slices.Delete(b.line, 0, 1)
		b.begun = append(b.begun, own)
		b.since = now
		s.enqueue(own, false)
	}
	if len(b.begun) == 0 {
		s.backlog = nil
	}
}

// goOnAt returns the time at which the next action begins even if the client reads nothing, or 0 if none waits.
func (s *session) goOnAt() int64 {
	if s.backlog == nil || len(s.backlog.line) == 0 {
		return 0
	}
	return s.backlog.since + backlogPatience
}

// callOff removes a stream that has ended from the backlog. Its action does not begin.
func (s *session) callOff(own *stream) {
	s.backlog.line = slices.DeleteFunc(s.backlog.line, func(other *stream) bool { return other == own })
	s.mu.Lock()
	defer s.mu.Unlock()
	own.action.on(end)
}
