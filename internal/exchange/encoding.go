package exchange

import (
	"errors"
	"io"
	"net/http"
)

// An Encoder encodes a body as it is sent, and writes what it makes of it to the writer that it was made with. Its methods are called by one
// goroutine at a time; Close is called once, also after an error and where the body is broken off: then that writer fails.
type Encoder interface {
	io.WriteCloser
	// Flush writes what the other end needs to decode all of the body so far.
	Flush() error
}

// An Encoding is what encodes the body of a Later answer. Decide is called once, when the head is settled:
//
//   - with a Complete answer, when the body has become complete, which it changes; what else it returns is ignored;
//   - or with a Later one, and the size of the body, -1 if it is not known. It returns that with other headers, and what
//     makes the encoder, nil if the body goes as it is.
//
// With a Tap in place of Decide, the body goes as it is, and the tap is shown it.
type Encoding struct {
	Decide func(answer Answer, size int64) (Answer, func(io.Writer) Encoder)
	Tap    Tap
	Around *Encoding // which encodes what this one has encoded

	done  bool // Decide, or Begin of the tap, has been called
	ended bool // nothing of the body is shown to the tap any more
	sink  *encodedSink
}

// decide calls Decide, or Begin of the tap.
func (e *Encoding) decide(answer Answer, size int64) (head Answer, encoder func(io.Writer) Encoder, tapped bool) {
	e.done = true
	if e.Tap == nil {
		head, encoder = e.Decide(answer, size)
		return head, encoder, false
	}
	head, tapped = e.Tap.Begin(answer, size)
	e.ended = !tapped
	return head, nil, tapped
}

// Begin lets the encodings change the head of an answer that begins and is not claimed. It returns the
// function that wraps the sink, nil if the body goes there as it is, and the size of what is sent, -1 if that is not known. If an
// encoding changes more than headers, misuse is called and the answer stays as it was.
func (e *Encoding) Begin(answer *Answer, method string, length int64, misuse func(from, to Answer)) (wrap func(Sink) Sink, size int64) {
	for ; e != nil; e = e.Around {
		if e.done {
			continue
		}
		head, kind := *answer, answer.Kind()
		head.SetKind(Later)
		head, encoder, tapped := e.decide(head, length)
		if head.Failed() || head.Kind() != Later || head.Status() != answer.Status() {
			misuse(*answer, head)
			continue
		}
		head.SetKind(kind)
		*answer = head
		if encoder == nil && !tapped || method == http.MethodHead || !BodyAllowed(answer.Status()) {
			continue
		}
		outer, inner, left := e, wrap, length
		wrap = func(sink Sink) Sink {
			if tapped {
				sink = &tappedSink{sink, outer, left}
			} else {
				outer.sink = &encodedSink{Sink: sink}
				outer.sink.encoder = encoder((*rawSink)(outer.sink))
				sink = outer.sink
			}
			if inner == nil {
				return sink
			}
			return inner(sink)
		}
		if !tapped {
			length = -1
		}
	}
	return wrap, length
}

// Complete has an answer encoded that has become complete. planned is the one that was to be made, which is claimed, as
// the complete one is if it is on the same memory; then it is claimed on return, too.
func (e *Encoding) Complete(planned, answer *Answer, method string) {
	if e.done || answer.Kind() != Complete {
		return
	}
	claimed := answer.Own() != nil && answer.SameOwner(planned)
	if claimed {
		answer.Reopen()
	}
	var changed Answer
	if method == http.MethodHead && answer.Body == "" {
		changed = e.Head(*answer)
	} else {
		changed, _, _ = e.decide(*answer, int64(len(answer.Body)))
	}
	if claimed && changed.SameOwner(answer) {
		changed.Claim()
	} else if claimed {
		answer.Claim()
		*planned = *answer // to be given back
	}
	*answer = changed
}

// Head has a complete answer to HEAD say what GET would.
func (e *Encoding) Head(answer Answer) Answer {
	size := max(answer.Announced(), -1)
	answer.SetKind(Later)
	answer, encoder, _ := e.decide(answer, size)
	if answer.Kind() == Later {
		answer.SetKind(Complete)
		if encoder != nil {
			answer.Announce(NoLength)
		}
	}
	return answer
}

// End has the encoder give back what it holds, if the body has not come to its end, and ends the tap.
func (e *Encoding) End() {
	e.endTap(false)
	if e.sink != nil && e.sink.encoder != nil {
		e.sink.close()
	}
}

var errBroken = errors.New("dunlin: the answer was broken off")

// An encodedSink is where the body of an answer goes that is encoded.
type encodedSink struct {
	Sink
	encoder Encoder // nil at the end
	broken  bool    // what it writes fails
}

// A rawSink is an encodedSink as its encoder writes to it.
type rawSink encodedSink

func (s *rawSink) Write(p []byte) (int, error) {
	if s.broken {
		return 0, errBroken
	}
	return s.Sink.Write(p)
}

func (s *encodedSink) Write(p []byte) (int, error) {
	if s.encoder == nil {
		return 0, errBroken
	}
	return s.encoder.Write(p)
}

func (s *encodedSink) ReadFrom(src io.Reader) (int64, error) { return CopyPieces(s, src) }

func (s *encodedSink) Flush() error {
	if s.encoder == nil {
		return errBroken
	}
	if err := s.encoder.Flush(); err != nil {
		return err
	}
	return s.Sink.Flush()
}

// Finish ends the body. One that cannot be ended is cut off.
func (s *encodedSink) Finish(trailers http.Header) {
	if s.encoder == nil {
		return
	}
	encoder := s.encoder
	s.encoder = nil
	if encoder.Close() != nil {
		panic(http.ErrAbortHandler)
	}
	s.Sink.Finish(trailers)
}

func (s *encodedSink) close() {
	encoder := s.encoder
	s.broken, s.encoder = true, nil
	_ = encoder.Close() // what it writes fails
}

// Decode reads all of src, up to limit bytes, and returns it. More is a 413 problem; an error of src that is
// not a problem becomes one with status 400. hold is called with a capacity before so much is read, to
// reserve the memory.
func (s *Server) Decode(src io.Reader, limit int64, hold func(capacity int) error) ([]byte, error) {
	const first, most = 4 << 10, 1 << 30
	var plain []byte
	for {
		if len(plain) == cap(plain) {
			grown := max(first, 2*cap(plain))
			if int64(grown) > limit {
				grown = int(limit) + 1 // to see that it is too long
			}
			if grown > most {
				return nil, s.BodyTooLarge(most)
			}
			if err := hold(grown); err != nil {
				return nil, err
			}
			plain = append(make([]byte, 0, grown), plain...)
		}
		n, err := src.Read(plain[len(plain):cap(plain)])
		plain = plain[:len(plain)+n]
		switch {
		case int64(len(plain)) > limit:
			return nil, s.BodyTooLarge(limit)
		case err == io.EOF:
			return plain, nil
		case err != nil:
			return nil, s.NotDecoded(err)
		}
	}
}

// NotDecoded is the problem of a body that is not in the coding that its client says; a problem stays as it is.
func (s *Server) NotDecoded(err error) error {
	if s.Pipeline.Status(err) != http.StatusInternalServerError {
		return err
	}
	return s.Pipeline.Problem(http.StatusBadRequest, "the request body is not what its Content-Encoding says", TooEarly(err))
}

// AboutCoding reports whether a header field says of the body what is not so once it has been decoded.
func AboutCoding(name string) bool {
	if len(name) != len("Content-Encoding") && len(name) != len("Content-Length") {
		return false
	}
	name = http.CanonicalHeaderKey(name)
	return name == "Content-Encoding" || name == "Content-Length"
}

// WithBody returns a copy of a request with a body that was decoded.
func WithBody(req *http.Request, body []byte) *http.Request {
	own := *req
	own.Header = req.Header.Clone()
	own.Header.Del("Content-Encoding")
	own.Header.Del("Content-Length")
	own.ContentLength, own.TransferEncoding = int64(len(body)), nil
	own.Body = io.NopCloser(&Reader{Rest: body})
	return &own
}
