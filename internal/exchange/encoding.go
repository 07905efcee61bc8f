package exchange

import (
	"errors"
	"io"
	"net/http"
)

// An Encoder encodes a body while the body is sent, and writes the result to the writer that its constructor got. Its methods are
// called by one goroutine at a time. Close is called once. It is also called after an error and for an aborted body; then the
// writer fails.
type Encoder interface {
	io.WriteCloser
	// Flush writes the bytes that the client needs to decode the body written so far.
	Flush() error
}

// An Encoding encodes the body of an answer that was of the kind Later. Decide is called once, when the head is final:
//
//   - for a body that has become complete, with a Complete answer. Decide returns the changed answer; its other result is
//     ignored;
//   - otherwise with a Later answer and the size of the body in bytes, -1 if unknown. Decide returns the answer with changed
//     headers, and the constructor of the encoder, nil if the body is not encoded.
//
// If Tap is set, Decide is nil, and the body is not encoded but passed to the tap.
type Encoding struct {
	Decide func(answer Answer, size int64) (Answer, func(io.Writer) Encoder)
	Tap    Tap
	Around *Encoding // encodes the output of this encoding; nil for none

	done  bool // Decide, or Begin of the tap, was called
	ended bool // the tap gets no more of the body
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

// Begin applies the encodings to the head of an answer that begins and is not claimed. It returns the function that wraps the
// sink, nil if the body is not encoded, and the size of the sent body, -1 if unknown. If an encoding changes more than headers,
// Begin calls misuse and leaves the answer unchanged.
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

// Complete encodes an answer that has become complete. planned is the original answer, which is claimed. If answer shares the
// memory of planned, it is claimed, too, and the encoded answer is claimed on return.
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
		*planned = *answer // to be released
	}
	*answer = changed
}

// Head changes a complete answer to HEAD, so that it has the header fields of the answer to GET.
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

// End makes the encoder release its resources if the body has not ended, and ends the tap.
func (e *Encoding) End() {
	e.endTap(false)
	if e.sink != nil && e.sink.encoder != nil {
		e.sink.close()
	}
}

var errBroken = errors.New("dunlin: the answer was broken off")

// An encodedSink is the sink of an encoded answer.
type encodedSink struct {
	Sink
	encoder Encoder // nil after the end
	broken  bool    // writes of the encoder fail
}

// A rawSink is the writer of the encoder of an encodedSink.
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

// Finish ends the body. If the encoder fails, the body is aborted.
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
	_ = encoder.Close() // its writes fail
}

// Decode reads and returns all of src, up to limit bytes. For a longer body it returns a 413 problem. An error of src that is not
// a problem becomes a problem with status 400. Before the buffer grows, Decode calls hold with the new capacity, to reserve the
// memory.
func (s *Server) Decode(src io.Reader, limit int64, hold func(capacity int) error) ([]byte, error) {
	const first, most = 4 << 10, 1 << 30
	var plain []byte
	for {
		if len(plain) == cap(plain) {
			grown := max(first, 2*cap(plain))
			if int64(grown) > limit {
				grown = int(limit) + 1 // one byte more, to detect a longer body
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

// NotDecoded returns the problem for a body that does not decode with its declared coding. A problem is returned unchanged.
func (s *Server) NotDecoded(err error) error {
	if s.Pipeline.Status(err) != http.StatusInternalServerError {
		return err
	}
	return s.Pipeline.Problem(http.StatusBadRequest, "the request body does not match its Content-Encoding", TooEarly(err))
}

// AboutCoding reports whether a header field describes the encoded body and is invalid after decoding.
func AboutCoding(name string) bool {
	if len(name) != len("Content-Encoding") && len(name) != len("Content-Length") {
		return false
	}
	name = http.CanonicalHeaderKey(name)
	return name == "Content-Encoding" || name == "Content-Length"
}

// WithBody returns a copy of a request with a decoded body.
func WithBody(req *http.Request, body []byte) *http.Request {
	own := *req
	own.Header = req.Header.Clone()
	own.Header.Del("Content-Encoding")
	own.Header.Del("Content-Length")
	own.ContentLength, own.TransferEncoding = int64(len(body)), nil
	own.Body = io.NopCloser(&Reader{Rest: body})
	return &own
}
