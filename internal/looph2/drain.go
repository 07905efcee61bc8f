//go:build linux

package looph2

import "time"

// A connection ends in two steps (RFC 9113 section 6.8): the client is told to begin no more streams, and a while later, which
// streams were the last. Requests in progress are served in between.
//
// The client is told before the response of a stream and not after it, when it may have begun another stream already. So a
// client that was served lately, and waits for nothing, is told with its next request, or when none has arrived for a while.
//
//	staying ──sayGoodbye──▶ said ──lastRequests──▶ final ──the last stream has ended──▶ ended
//
// Then the server's side is shut down, and input is discarded until the client has closed, for at most 2 s: the client may send
// frames at any time, such as WINDOW_UPDATE or PING. If the socket were closed already, the answer would be a reset, and
// clients drop unread responses and the last GOAWAY on a reset.

type goodbye uint8

const (
	staying goodbye = iota
	said
	final
	ended
)

// lastRequests is the time for which streams may still begin, as on HTTP/1.1 connections that are closed.
const lastRequests = 250 * time.Millisecond

// ends reports whether the connection is to end.
func (s *session) ends() bool {
	most := s.h.server.MaxRequestsPerConnection
	return s.d.Draining() || most > 0 && s.served >= most
}

// sayGoodbye begins the end.
func (s *session) sayGoodbye() {
	if s.goodbye == staying {
		s.goodbye, s.goodbyeAt = said, s.d.Now()+int64(lastRequests)
		s.h2.GoAway(false)
	}
}

// part takes the next step of the end and schedules the following one.
func (s *session) part() {
	if s.goodbye == ended {
		return
	}
	if s.goodbye == staying && s.ends() {
		s.goodbyeAt = s.since + int64(lastRequests)
		if s.h2.Len() > 0 || s.d.Now() >= s.goodbyeAt {
			s.sayGoodbye()
		}
	}
	if s.goodbye == said && s.d.Now() >= s.goodbyeAt {
		s.goodbye = final
		s.h2.GoAway(true)
	}
	if (s.goodbye == final || s.h2.GoingAway()) && s.h2.Len() == 0 && s.half() == 0 {
		s.goodbye = ended
		s.c.CloseLingering()
		return
	}
	s.schedule(s.d)
}
