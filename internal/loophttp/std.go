//go:build linux

package loophttp

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// OpenContext implements [request.Framing]: the context ends when the client closes the connection.
func (x *wire) OpenContext() bool {
	if !x.d.Claim() {
		return false
	}
	defer x.d.Release()
	x.MakeContext(x.handler.context, nil, x.d.HasTimeout(), x.d.TimeLeft(0))
	x.Conn.SetHangup(x.Canceler())
	return true
}

// OpenStd implements [request.Framing].
func (x *wire) OpenStd(req *http.Request) (authority bool, body io.Reader) {
	h := &x.head
	req.Proto, req.ProtoMajor, req.ProtoMinor = "HTTP/1."+strconv.Itoa(int(h.Minor)), 1, int(h.Minor)
	req.RequestURI, req.Close = string(h.Target()), x.closing
	if h.Chunked {
		req.TransferEncoding = []string{"chunked"}
		req.Header.Del("Transfer-Encoding")
		exchange.AnnounceTrailers(req)
	}
	if cancel := x.Canceler(); cancel != nil && x.body == received && x.d.Claim() {
		x.Conn.SetHangupAfterInput(cancel) // as in net/http, which watches the connection only until the next byte
		x.d.Release()
	}
	switch {
	case !h.HasBody():
	case x.body == received:
		body = x.whole.Reader()
	default:
		x.stream.most = math.MaxInt64
		body = x.stream
	}
	return h.Form == http1.AuthorityForm, body
}

// StopBody implements [request.Framing].
func (x *wire) StopBody() {
	if x.body != received {
		x.stream.stop()
	}
}

// Trailers implements [request.Framing]: only chunked bodies have trailers.
func (x *wire) Trailers(yield func(name, value string) bool) {
	body := x.chunked
	if x.body != received {
		x.mu.Lock()
		defer x.mu.Unlock()
		body = &x.stream.decoder
	}
	if body == nil {
		return
	}
	for i := range body.TrailerLen() {
		if name, value := body.Trailer(i); !yield(string(name), string(value)) {
			return
		}
	}
}

func (x *wire) Body(limit int64) io.Reader {
	if x.body != received {
		x.stream.most = limit
		return x.stream
	}
	return x.whole.AtMost(limit, x.handler.server)
}

func (x *wire) RefuseBody() {
	if x.body != received {
		x.stream.err = errRefused
	}
}

// headRoom is the usual size of a response head, in bytes.
const headRoom = 512

// Begin appends the head of an answer whose body follows in pieces.
func (x *wire) Begin(resp *exchange.Answer, length int64) exchange.Sink {
	x.beginWrite()
	defer x.endWrite()
	if !x.liftTimeout() {
		return exchange.LateSink{}
	}
	if x.d.Draining() || x.body != received && (!x.duplex || x.head.Expect100) && x.stream.tooMuchLeft() {
		x.closing = true
	}
	x.beginAnswering()
	x.moveInput()
	if own := resp.Own(); own != nil && own.Lasts {
		x.Conn.ReleaseReservation() // usually empty
	}
	x.sending.on(begin)
	x.begunAt = int32(len(x.d.Out))
	x.d.Reserve(headRoom)
	x.appendHead(resp, length)
	if !x.d.Inline() {
		x.opening = nil // a stream may last long and renders the date only once
	}
	chunked := length < 0 && x.minor > 0 && http1.BodyAllowed(x.head.Method, resp.Status())
	return &sink{stream{x: x, chunked: chunked}}
}

func (x *wire) Sink() exchange.Sink { return &sink{stream{x: x}} }

func (x *wire) CloseAfter() { x.closing = true }

// Interim sends an interim response. Clients of HTTP/1.0 get none.
func (x *wire) Interim(status int, h http.Header) {
	if x.minor == 0 {
		return
	}
	x.beginWrite()
	defer x.endWrite()
	if !x.claim() {
		return
	}
	defer x.unclaim()
	if status == http.StatusContinue && x.body != received {
		x.stream.asked = true
	}
	out := http1.AppendStatusLine(x.d.Out, status)
	for name, value := range request.Sendable(h) {
		out = http1.AppendField(out, name, value)
	}
	if status == http.StatusSwitchingProtocols {
		for _, name := range [...]string{"Connection", "Upgrade"} { // fields of the connection are not sendable in general
			for _, value := range h[name] {
				if exchange.CheckField("X", value) == nil {
					out = http1.AppendField(out, name, value)
				}
			}
		}
	}
	x.d.Out = append(out, http1.CRLF...)
	if x.flushWithDeadline() != nil { // as when sending a piece of an answer fails
		x.closing = true
		x.Conn.Close()
	}
}

// A sink writes the response of a standard handler to the connection. It may be used on any goroutine, while another one reads
// the body.
type sink struct{ stream }

func (s *sink) Write(p []byte) (int, error) {
	s.x.beginWrite()
	defer s.x.endWrite()
	return s.stream.Write(p)
}

// ReadFrom copies src to the body. For a regular file in an io.LimitedReader, as http.ServeContent passes it, it uses sendfile.
func (s *sink) ReadFrom(src io.Reader) (int64, error) {
	if !s.chunked {
		if lim, f := exchange.RegularFile(src); f != nil {
			s.x.beginWrite()
			defer s.x.endWrite()
			return s.sendFile(lim, f)
		}
	}
	return exchange.CopyPieces(s, src) // src may be the request body
}

func (s *sink) Flush() error {
	s.x.beginWrite()
	defer s.x.endWrite()
	if !s.x.claim() { // a 101 has been sent, but no answer has begun
		return exchange.ErrLate
	}
	defer s.x.unclaim()
	return s.stream.Flush()
}

func (s *sink) Finish(trailers http.Header) {
	s.x.beginWrite()
	defer s.x.endWrite()
	s.stream.finish(trailers)
}

// Hijack removes the connection from the engine. The returned reader begins with the bytes received after the request.
func (s *sink) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	x := s.x
	x.beginWrite()
	defer x.endWrite()
	if !x.liftTimeout() {
		return nil, nil, exchange.ErrLate
	}
	s.seal()
	if err := x.flush(0); err != nil {
		return nil, nil, err
	}
	rest := bytes.Clone(x.after)
	if x.body != received {
		rest = bytes.Clone(x.stream.rest)
	}
	x.KeepLocalAddr()
	conn, err := x.Conn.Hijack()
	if err != nil {
		return nil, nil, err
	}
	rest = append(rest, x.Conn.Unread()...)
	x.sending.on(hijack)
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), conn), max(4<<10, len(rest)))
	_, _ = r.Peek(len(rest)) // cannot fail: the bytes are in memory
	return conn, bufio.NewReadWriter(r, bufio.NewWriter(conn)), nil
}

func (s *sink) SetReadDeadline(t time.Time) error {
	s.x.setDeadline(false, t)
	return nil
}

func (s *sink) SetWriteDeadline(t time.Time) error {
	s.x.setDeadline(true, t)
	return nil
}

// EnableFullDuplex declares that the handler reads the body while it writes the answer. Handlers may read it without this call,
// but only after it may the head of the answer promise to keep the connection before the body ends.
func (s *sink) EnableFullDuplex() error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.duplex = true
	return nil
}
