package exchange

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// A Tap observes the body of a Later answer while it is sent, without changing it. Its methods are called by one goroutine at a
// time.
type Tap interface {
	// Begin is called once, when the head of the answer is final. It returns the answer with changed headers. If the answer is
	// Complete, no other method is called. Otherwise the answer is of the kind Later, size is the size of its body in bytes, -1
	// if unknown, and the second result reports whether the tap observes the body.
	Begin(answer Answer, size int64) (Answer, bool)

	// Piece is called with the next bytes of the body, which are borrowed until it returns. It reports whether to continue.
	Piece(p []byte) bool

	// End is called once if Begin was not called, or if Begin has requested the body. whole is true if the tap got the complete
	// body without an error; then End is called before the client can know that the body is complete.
	End(whole bool)
}

// endTap ends the tap of an encoding, if there is one.
func (e *Encoding) endTap(whole bool) {
	if e.Tap != nil && !e.ended {
		e.ended = true
		e.Tap.End(whole)
	}
}

// A tappedSink is the sink of an answer with a tap.
type tappedSink struct {
	Sink
	encoding *Encoding
	left     int64 // missing bytes of the body, -1 if unknown
}

// show passes the next bytes to the tap, and ends the tap if these bytes end the body or exceed its size.
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
	s.endTapAfter(err)
	return n, err
}

// endTapAfter ends the tap after an error.
func (s *tappedSink) endTapAfter(err error) {
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.encoding.endTap(false)
	}
}

func (s *tappedSink) ReadFrom(src io.Reader) (int64, error) {
	if s.encoding.ended {
		return s.Sink.ReadFrom(src)
	}
	n, err := CopyPieces(s, src)
	s.endTapAfter(err)
	return n, err
}

func (s *tappedSink) Flush() error {
	err := s.Sink.Flush()
	s.endTapAfter(err)
	return err
}

func (s *tappedSink) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.encoding.endTap(false)
	return s.Sink.Hijack()
}

// Finish ends the body. For a body with trailers it calls Tap.End with whole false, because the pieces do not include the
// trailers.
func (s *tappedSink) Finish(trailers http.Header) {
	s.encoding.endTap(s.left <= 0 && len(trailers) == 0)
	s.Sink.Finish(trailers)
}
