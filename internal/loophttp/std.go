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

// StdRequest returns the *http.Request of the current request and makes it at the first call.
func (x *wire) StdRequest() *http.Request {
	if x.std != nil {
		if ctx := x.call.Context(x.Context()); ctx != x.std.Context() {
			x.mu.Lock()
			x.std = x.std.WithContext(ctx)
			if x.stdBody != nil && x.stdBody.req != nil {
				x.stdBody.req = x.std // the request that gets the trailers
			}
			x.mu.Unlock()
		}
		x.rewindStdBody()
		return x.std
	}
	h := &x.head
	req := exchange.NewStdRequest(x, x.s.Method, request.StdFields(h.Len(), x.Headers))
	req.Proto, req.ProtoMajor, req.ProtoMinor = "HTTP/1."+strconv.Itoa(int(h.Minor)), 1, int(h.Minor)
	req.RequestURI, req.Close = string(h.Target()), x.closing
	req.URL = request.TargetURL(h.Form == http1.AuthorityForm, req.RequestURI)
	req = req.WithContext(x.call.Context(x.Context()))
	if x.body == received && x.cancel != nil && x.d.Claim() {
		x.c.SetHangupAfterInput(x.cancel) // as in net/http, which watches the connection only until the next byte
		x.d.Release()
	}
	if h.HasBody() {
		x.stdBody = &stdBody{x: x}
		if x.body != received {
			x.stream.most = math.MaxInt64
		} else {
			x.stdBody.whole = x.whole.Reader()
		}
		req.Body = x.stdBody
		if most := x.s.Route.MaxBody; most > 0 {
			req.Body = http.MaxBytesReader(nil, x.stdBody, most)
		}
	}
	if h.Chunked {
		req.TransferEncoding = []string{"chunked"}
		req.Header.Del("Transfer-Encoding")
		exchange.AnnounceTrailers(req)
		x.stdBody.req = req
	}
	x.call.SetMatch(req)
	x.std = req
	x.rewindStdBody()
	return x.std
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
		x.c.ReleaseReservation() // usually empty
	}
	x.begun, x.begunAt = true, len(x.d.Out)
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

func (x *wire) OmitDate() { x.undated = true }

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
	for _, name := range exchange.SortedKeys(h) {
		upgrades := status == http.StatusSwitchingProtocols && (name == "Connection" || name == "Upgrade")
		for _, v := range h[name] {
			if exchange.CheckField(name, v) == nil || upgrades && exchange.CheckField("X", v) == nil {
				out = http1.AppendField(out, name, v)
			}
		}
	}
	x.d.Out = append(out, http1.CRLF...)
	if x.flushWithDeadline() != nil { // as when sending a piece of an answer fails
		x.closing = true
		x.c.Close()
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
	if x.local != nil {
		x.local.find() // the address is unavailable after the hijacking
	}
	conn, err := x.c.Hijack()
	if err != nil {
		return nil, nil, err
	}
	rest = append(rest, x.c.Unread()...)
	x.hijacked = true
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
