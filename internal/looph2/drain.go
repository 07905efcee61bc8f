//go:build linux

package looph2

import "time"

// A connection ends in two steps (RFC 9113 section 6.8): the first GOAWAY tells the client to begin no more streams, and the
// second, a while later, names the last stream. Between the two the streams under way are served.
//
// The first GOAWAY is sent before the answer of a stream, because after the answer the client may already have begun another stream.
// So a client that was served lately and has no open stream receives the first GOAWAY when it sends its next request, or when it
// has sent none for lastRequests.
//
//	staying ──sayGoodbye──▶ said ──lastRequests──▶ final ──the last stream is over──▶ ended
//
// After the end the server shuts down its sending side, and discards input until the client has closed the connection, for at most
// 2 s. The client may still send frames such as WINDOW_UPDATE or PING. On a closed socket TCP would answer them with a reset, and
// the client would lose the answers and the GOAWAY that it has not read yet.

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
