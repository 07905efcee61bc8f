package exchange

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// A Tap is shown the body of a Later answer as it is sent, which stays as it is. Its methods are called by one goroutine at a time.
type Tap interface {
	// Begin gets the answer, once, when its head is settled: a Complete one, after which nothing follows, or a Later one and the
	// size of its body, -1 if that is not known. It returns the answer with other headers, and whether it is to be shown the body.
	Begin(answer Answer, size int64) (Answer, bool)

	// Piece gets what is sent next, which is the caller's, and reports whether it is to get more.
	Piece(p []byte) bool

	// End is called once if Begin was not, or has asked for the body. whole says that all of that was shown and nothing has gone wrong;
	// then it is called before the client can know that it has all.
	End(whole bool)
}

// endTap ends the tap of an encoding that has one.
func (e *Encoding) endTap(whole bool) {
	if e.Tap != nil && !e.ended {
		e.ended = true
		e.Tap.End(whole)
	}
}

// A tappedSink is where the body of an answer goes that is shown to a tap.
type tappedSink struct {
	Sink
	encoding *Encoding
	left     int64 // of the body, -1 if that is not known
}

// show shows the tap what is sent next.
func (s *tappedSink) show(p []byte) {
	switch e := s.encoding; {
	case e.ended || len(p) == 0:
	case s.left >= 0 && s.left < int64(len(p)), !e.Tap.Piece(p):
		e.endTap(false)
	case s.left >= 0:
		if s.left -= int64(len(p)); s.left == 0 {
			e.endTap(true)
		}
	}
}

func (s *tappedSink) Write(p []byte) (int, error) {
	s.show(p)
	n, err := s.Sink.Write(p)
	s.note(err)
	return n, err
}

// note ends the tap when something has gone wrong.
func (s *tappedSink) note(err error) {
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.encoding.endTap(false)
	}
}

func (s *tappedSink) ReadFrom(src io.Reader) (int64, error) {
	if s.encoding.ended {
		return s.Sink.ReadFrom(src)
	}
	n, err := CopyPieces(s, src)
	s.note(err)
	return n, err
}

func (s *tappedSink) Flush() error {
	err := s.Sink.Flush()
	s.note(err)
	return err
}

func (s *tappedSink) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.encoding.endTap(false)
	return s.Sink.Hijack()
}

// Finish ends the body. One with trailers is not shown in whole by its pieces.
func (s *tappedSink) Finish(trailers http.Header) {
	s.encoding.endTap(s.left <= 0 && len(trailers) == 0)
	s.Sink.Finish(trailers)
}
