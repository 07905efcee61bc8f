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
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// MaxDiscard is the maximum number of unread bytes of a body that are discarded to keep a connection. If more remain, the
// connection closes.
const MaxDiscard = 64 << 10

// MaxBodyOf returns the limit on request bodies of the route, in bytes.
func (s *Server) MaxBodyOf(r *Route) int64 {
	if r.MaxBody > 0 {
		return r.MaxBody
	}
	return s.MaxBody
}

// BodyTooLarge returns the problem for a body over the limit.
func (s *Server) BodyTooLarge(limit int64) error {
	return s.Pipeline.Problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than the limit of %d bytes", limit), nil)
}

// BodyTooLargeEver returns the problem for a body that exceeds the whole budget or the share of one client, so that it can never
// be received.
func (s *Server) BodyTooLargeEver() error { return s.tooLargeEver("the request body is") }

func (s *Server) tooLargeEver(what string) error {
	detail := fmt.Sprintf("%s larger than the %v", what, s.Budget)
	if most := s.Budget.MostBody(); most != s.Budget.Bound() {
		detail = fmt.Sprintf("%s larger than the %d bytes that one client may have held", what, most)
	}
	return s.Pipeline.Problem(http.StatusRequestEntityTooLarge, detail, nil)
}

// NoRoomForValues is NoRoomForBody for the decoded values of a request body.
func (s *Server) NoRoomForValues(route string, met memory.Cap) error {
	if met == memory.ConnectionCap || met == memory.BudgetCap {
		return s.tooLargeEver("the decoded values of the request body are")
	}
	return s.NoRoomForBody(route, met)
}

// NoRoomForBody returns the problem for a request body that the memory budget refuses. It counts the refusal, and logs it at a
// limited rate.
func (s *Server) NoRoomForBody(route string, met memory.Cap) error {
	if met == memory.ConnectionCap || met == memory.BudgetCap {
		return s.BodyTooLargeEver()
	}
	s.NoteNoMemory("request bodies", route, met)
	return s.Pipeline.NoMemory("the request body", met)
}

// Lost reports whether nobody waits for the answer any more: the client has disconnected, or ctx has exceeded its deadline. If w
// is not a Watcher, Lost reports whether ctx has ended. announced is the length of the request body in bytes (-1: unknown), and
// read is the number of its bytes that were read.
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

// BodyCut returns the problem for a body that ended early or arrived too slowly.
func (s *Server) BodyCut(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return bodyTimeout{s.Pipeline.Problem(http.StatusRequestTimeout, "the request body arrived too slowly", err)}
	}
	return s.Pipeline.Problem(http.StatusBadRequest, "the connection was closed during the request body", TooEarly(err))
}

// TooEarly returns the cause for the problem of an incomplete body. It never wraps io.EOF, which would mean that the body is
// complete.
func TooEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// CutBody counts a client that sends a body too slowly, and returns the error for the reader of the body: a 408 problem.
func (s *Server) CutBody(remote netip.AddrPort) error {
	what := s.SlowBody()
	s.NoteSlow(admission.SlowBody, remote, what)
	return bodyTimeout{s.Pipeline.Problem(http.StatusRequestTimeout, what, os.ErrDeadlineExceeded)}
}

// A bodyTimeout is the problem of a read that exceeded a deadline. Like the error of net/http it implements net.Error itself,
// because handlers use a type assertion.
type bodyTimeout struct{ error }

var _ net.Error = bodyTimeout{}

func (t bodyTimeout) Unwrap() error { return t.error }
func (bodyTimeout) Timeout() bool   { return true }
func (bodyTimeout) Temporary() bool { return true }

// StdBodyError converts an error of reading a body for a standard handler. For a body that ended early, net/http returns
// io.ErrUnexpectedEOF itself, and handlers compare with it.
func StdBodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A Reader reads the borrowed slice Rest. The zero value returns io.EOF.
type Reader struct{ Rest []byte }

func (b *Reader) Read(p []byte) (int, error) {
	if len(b.Rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.Rest)
	b.Rest = b.Rest[n:]
	return n, nil
}

// Bounded returns a reader of src. Its Read returns a 413 problem after limit bytes, and a 400 problem if src returns an error
// that is not a problem.
func (s *Server) Bounded(src io.Reader, limit int64) io.Reader {
	return &boundedBody{src, s, limit, limit}
}

type boundedBody struct {
	src         io.Reader
	server      *Server
	left, limit int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	switch b.left -= int64(n); {
	case b.left < 0:
		return 0, b.server.BodyTooLarge(b.limit)
	case err != nil && err != io.EOF:
		err = b.server.BodyUnreadable(err)
	}
	return n, err
}

// Gathered limits body to limit bytes, if it has a method Bound, and returns it. Callers that store the whole body use Gathered,
// because the body of an extended CONNECT stream (RFC 8441) may have no limit of its own.
func Gathered(body io.Reader, limit int64) io.Reader {
	if b, ok := body.(interface{ Bound(limit int64) }); ok {
		b.Bound(limit)
	}
	return body
}

// A FailedReader is an unreadable body.
type FailedReader struct{ Err error }

func (b FailedReader) Read([]byte) (int, error) { return 0, b.Err }

// RemoveForm removes the temporary files of the form that a handler has parsed from req, at the end of the request. As on
// net/http, a handler must itself remove the files of its own copy of req.
func RemoveForm(req *http.Request) {
	if req.MultipartForm != nil {
		_ = req.MultipartForm.RemoveAll() // files that cannot be removed remain
	}
}

// BodyUnreadable returns the problem for an unreadable body. A problem is returned unchanged.
func (s *Server) BodyUnreadable(err error) error {
	if s.Pipeline.Status(err) != http.StatusInternalServerError {
		return err
	}
	return s.Pipeline.Problem(http.StatusBadRequest, "the request body could not be read to its end", TooEarly(err))
}

// Complete HTTP/1.1 answers that are sent before a request is parsed. They are constants, because rendering them would delay
// the start of every program. They have no Date (RFC 9110 section 6.6.1).
var (
	// AddressRefusal answers a connection above the limit per address. ConnectionRefusal answers a connection if
	// every event loop is at its limit of connections.
	AddressRefusal = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n" +
		"Content-Length: 120\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
		`{"title":"Service Unavailable","status":503,"detail":"the server has as many connections from this address as it takes"}`)
	ConnectionRefusal = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n" +
		"Content-Length: 102\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
		`{"title":"Service Unavailable","status":503,"detail":"the server has as many connections as it takes"}`)
	// ClearTextRefusal answers a request without TLS on a TLS port.
	ClearTextRefusal = []byte("HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n" +
		"Content-Length: 111\r\nConnection: close\r\n\r\n" +
		`{"title":"Bad Request","status":400,"detail":"the request came in clear text: this port speaks TLS, use https"}`)
)
