package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// The problems of bodies that cannot be read, the same from every adapter.

// MaxDiscard is how many unread bytes of a body are discarded to keep a
// connection; with more to come it is closed.
const MaxDiscard = 64 << 10

// MaxBodyOf returns the limit on the body of a request to the route, in bytes.
func (s *Server) MaxBodyOf(r *Route) int64 {
	if r.MaxBody > 0 {
		return r.MaxBody
	}
	return s.MaxBody
}

// BodyTooLarge is the problem of a body over the limit.
func (s *Server) BodyTooLarge(limit int64) error {
	return s.Pipeline.Problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than the limit of %d bytes", limit), nil)
}

// BodyTooLargeEver is the problem of a body that could never be held.
func (s *Server) BodyTooLargeEver() error { return s.tooLargeEver("the request body is") }

func (s *Server) tooLargeEver(what string) error {
	detail := fmt.Sprintf("%s larger than the %v", what, s.Budget)
	if most := s.Holders.MostBody(); most != s.Budget.Bound() {
		detail = fmt.Sprintf("%s larger than the %d bytes that one client may have held", what, most)
	}
	return s.Pipeline.Problem(http.StatusRequestEntityTooLarge, detail, nil)
}

// NoRoomForValues is NoRoomForBody for the values that a request body decodes to.
func (s *Server) NoRoomForValues(route string, met admission.Cap) error {
	if met == admission.ConnectionCap || met == admission.BudgetCap {
		return s.tooLargeEver("the decoded values of the request body are")
	}
	return s.NoRoomForBody(route, met)
}

// NoRoomForBody counts, and logs now and then, that there is no memory for the body of a request, and
// returns the problem.
func (s *Server) NoRoomForBody(route string, met admission.Cap) error {
	if met == admission.ConnectionCap || met == admission.BudgetCap {
		return s.BodyTooLargeEver()
	}
	s.NoteNoMemory("request bodies", route, met)
	return s.Pipeline.NoMemory("the request body", met)
}

// Lost reports whether nobody waits for a request any more, of whose body so many bytes were
// announced (-1: unknown) and read.
func Lost(w Wire, ctx context.Context, announced int64, read int) bool {
	watcher, knows := w.(Watcher)
	if err := ctx.Err(); !knows || errors.Is(err, context.DeadlineExceeded) {
		return err != nil
	}
	left := int64(-1)
	if announced >= 0 {
		left = announced - int64(read)
	}
	return watcher.Lost(left)
}

// BodyCut is the problem of a body that ended early or came too slowly.
func (s *Server) BodyCut(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return bodyTimeout{s.Pipeline.Problem(http.StatusRequestTimeout, "the request body came too slowly", err)}
	}
	return s.Pipeline.Problem(http.StatusBadRequest, "the connection was closed in the middle of the request body", TooEarly(err))
}

// TooEarly returns the cause of the problem of a body that cannot be read to its end. It never wraps io.EOF, which says
// that a body is complete.
func TooEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// CutBody notes that a client is too slow with a body, and returns the error for who
// reads it: a 408 problem.
func (s *Server) CutBody(remote netip.AddrPort) error {
	what := s.SlowBody()
	s.NoteSlow(admission.SlowBody, remote, what)
	return bodyTimeout{s.Pipeline.Problem(http.StatusRequestTimeout, what, os.ErrDeadlineExceeded)}
}

// A bodyTimeout is the problem of a read that a deadline has ended. It is a net.Error itself, as that of net/http:
// handlers ask for one by a type assertion.
type bodyTimeout struct{ error }

var _ net.Error = bodyTimeout{}

func (t bodyTimeout) Unwrap() error { return t.error }
func (bodyTimeout) Timeout() bool   { return true }
func (bodyTimeout) Temporary() bool { return true }

// StdBodyError returns err, of reading a body, as a standard handler gets it: of a body that ended early
// net/http gives io.ErrUnexpectedEOF itself, with which handlers compare it.
func StdBodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A Reader reads a borrowed slice. The zero value has come to the end.
type Reader struct{ Rest []byte }

func (b *Reader) Read(p []byte) (int, error) {
	if len(b.Rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.Rest)
	b.Rest = b.Rest[n:]
	return n, nil
}

// Bounded returns a reader of a body that fails with a problem of 413 once more than so many bytes
// were read, and with one of 400 if src cannot be read to its end.
func (s *Server) Bounded(src io.Reader, most int64) io.Reader {
	return &boundedBody{src, s, most, most}
}

type boundedBody struct {
	src        io.Reader
	server     *Server
	left, most int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	switch b.left -= int64(n); {
	case b.left < 0:
		return 0, b.server.BodyTooLarge(b.most)
	case err != nil && err != io.EOF:
		err = b.server.BodyUnreadable(err)
	}
	return n, err
}

// Gathered returns the reader of a body for who keeps all of it: that is bounded, also where what passes by is
// not, such as what another protocol says on a stream.
func Gathered(body io.Reader, most int64) io.Reader {
	if b, ok := body.(interface{ Bound(most int64) }); ok {
		b.Bound(most)
	}
	return body
}

// A FailedReader is a body that cannot be read.
type FailedReader struct{ Err error }

func (b FailedReader) Read([]byte) (int, error) { return 0, b.Err }

// RemoveForm removes the temporary files of the form that a handler has parsed from
// req, when the request is over. Files of a copy of req that the handler made are its
// own to remove, as on net/http.
func RemoveForm(req *http.Request) {
	if req.MultipartForm != nil {
		_ = req.MultipartForm.RemoveAll() // what cannot be removed stays
	}
}

// BodyUnreadable is the problem of a body that could not be read; one that is a
// problem already stays as it is.
func (s *Server) BodyUnreadable(err error) error {
	if s.Pipeline.Status(err) != http.StatusInternalServerError {
		return err
	}
	return s.Pipeline.Problem(http.StatusBadRequest, "the request body could not be read to its end", TooEarly(err))
}

// Whole answers of HTTP/1.1 for connections, which belong to no request. The bytes are constant, because rendering them
// would delay the start of every program. They have no Date (RFC 9110 section 6.6.1).
var (
	// AddressRefusal and ConnectionRefusal answer a connection beyond a limit, by address and in all.
	AddressRefusal = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n" +
		"Content-Length: 120\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
		`{"title":"Service Unavailable","status":503,"detail":"the server has as many connections from this address as it takes"}`)
	ConnectionRefusal = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n" +
		"Content-Length: 102\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
		`{"title":"Service Unavailable","status":503,"detail":"the server has as many connections as it takes"}`)
	// ClearTextRefusal answers a request in clear text on a port for TLS.
	ClearTextRefusal = []byte("HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n" +
		"Content-Length: 111\r\nConnection: close\r\n\r\n" +
		`{"title":"Bad Request","status":400,"detail":"the request came in clear text: this port speaks TLS, use https"}`)
)
