//go:build linux

package looph2

import "time"

// The end of a connection has two steps (RFC 9113 section 6.8): the client is told to begin no more
// streams, and a while later, which streams were the last. In between what was under way is served.
//
// It is told before the answer of a stream, not behind it, where it may have begun another one that it
// must not send any more. So a client that has been served lately, and waits for nothing, is told with its
// next request, or when none has come for a while.
//
//	staying ──sayGoodbye──▶ said ──lastRequests──▶ final ──the last stream is over──▶ ended
//
// Then the server's side is shut, and what comes is discarded until the client has closed, for 2 s at most: it may
// always send something that nobody has asked for, such as WINDOW_UPDATE or a PING. Were the socket closed already, that
// would be answered with a reset, for which clients drop answers, and the last GOAWAY, that they have not read.

type goodbye uint8

const (
	staying goodbye = iota
	said
	final
	ended
)

// lastRequests is how long streams may still begin, as on connections of HTTP/1.1 that are closed.
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

// part takes the next step towards the end, and says when to go on.
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
