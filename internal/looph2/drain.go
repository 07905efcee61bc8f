//go:build linux

package looph2

import "time"

// A connection ends in two steps (RFC 9113 section 6.8): the first GOAWAY tells the client to begin no more streams, and the
// second, a while later, names the last stream. Between the two the streams under way are served.
//
// The first GOAWAY is sent before the answer of a stream. After the answer the client may already have begun another stream. So
// a client that was served lately, and waits for nothing, receives it with its next request, or when it has sent none for a
// while.
//
//	staying ──sayGoodbye──▶ said ──lastRequests──▶ final ──the last stream is over──▶ ended
//
// Then the server shuts its side down, and discards input until the client has closed, for at most 2 s: the client may always
// send unsolicited frames, such as WINDOW_UPDATE or PING. If the socket were closed already, TCP would answer them with a
// reset, on which clients drop answers, and the last GOAWAY, that they have not read.

type goodbye uint8

const (
	staying goodbye = iota
	said
	final
	ended
)

// lastRequests is the time for which streams may still begin, as on HTTP/1.1 connections that are about to close.
const lastRequests = 250 * time.Millisecond

// ends reports whether the connection is about to end.
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

// part takes the next step towards the end, and schedules the one after it.
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
