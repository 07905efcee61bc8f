package memhttp

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A wire is a request and the way to its client. It serves one.
type wire struct {
	exchange.StdHead // the request; its body is never nil
	server           *exchange.Server
	call             exchange.Call
	s                *exchange.State // that of call
	ctx              context.Context
	end              context.CancelFunc
	race             *exchange.Race      // under a timeout, between the action and the clock
	answer           chan *http.Response // gets one, nil if there is no answer
	resp             *http.Response      // the answer, once it is given
	body             *io.PipeWriter      // likewise, if it comes in pieces
	close            bool                // the connection would close after the answer
	undated          bool                // the answer has no Date
	finished         bool                // the body that comes in pieces is there, and ends when the request has
	left             int64               // bytes of the body to come, if it comes in pieces and its length is known
	lent             exchange.LentBody   // what standard handlers read of a body that was read before
}

// Received returns nothing: bodies are read as they are asked for.
func (x *wire) Received() ([]byte, bool)  { return nil, false }
func (x *wire) Body(most int64) io.Reader { return x.server.Bounded(x.Req.Body, most) }
func (x *wire) RefuseBody()               {}

func (x *wire) Context() context.Context { return x.ctx }

func (x *wire) Endable() (ctx context.Context, end context.CancelFunc) {
	x.ctx, end = context.WithCancel(x.ctx)
	return x.ctx, end
}

// StdRequest returns the request as net/http knows it.
func (x *wire) StdRequest() *http.Request {
	x.Req = x.Req.WithContext(x.call.Context(x.ctx))
	x.call.SetMatch(x.Req)
	if most := x.s.Route.MaxBody; x.s.Loaded {
		x.lent.Lend(x.s.Whole)
		x.Req.Body = &x.lent
	} else if most > 0 {
		x.Req.Body = http.MaxBytesReader(nil, x.Req.Body, most)
	}
	return x.Req
}

// Interim tells who asks for that, as clients of net/http do.
func (x *wire) Interim(status int, h http.Header) {
	if trace := httptrace.ContextClientTrace(x.Req.Context()); trace != nil && trace.Got1xxResponse != nil {
		_ = trace.Got1xxResponse(status, textproto.MIMEHeader(h.Clone())) // an error would end the client's wait
	}
}

func (x *wire) CloseAfter()         { x.close = true }
func (x *wire) OmitDate()           { x.undated = true }
func (x *wire) Abandoned()          {}
func (x *wire) MayWait()            {}
func (x *wire) Waited()             {}
func (x *wire) Sink() exchange.Sink { return (*sink)(x) }

func (x *wire) Account() *admission.Account {
	return x.server.Holders.Open((*holder)(x), x.server.Client(x).Addr())
}

func (x *wire) ReleaseAccount(a *admission.Account) {
	if !a.CloseIdle() {
		a.Close()
	}
}

// A holder is a wire as one who holds memory.
type holder wire

func (h *holder) RemoteAddr() netip.AddrPort { return h.server.Client((*wire)(h)) }

// End has the reading of the body fail.
func (h *holder) End(a *admission.Account) {
	h.server.NoteEnded(h.RemoteAddr(), a)
	_ = h.Req.Body.Close() // a Read that waits returns
}

// A sink is a wire as the way to its client.
type sink wire

// Begin returns the head of an answer whose body comes in pieces.
func (x *wire) Begin(a *exchange.Answer, length int64) exchange.Sink {
	if !x.race.Begin() {
		return exchange.LateSink{}
	}
	r, w := io.Pipe()
	resp := x.head(a, length)
	x.left, x.body, x.resp, resp.Body = length, w, resp, body{r, x.end}
	if !x.bodied(a) {
		_ = w.Close() // it never fails
	}
	x.answer <- resp
	return (*sink)(x)
}

// A body is that of an answer which comes in pieces. Who closes it has gone.
type body struct {
	*io.PipeReader
	end context.CancelFunc
}

func (b body) Close() error {
	b.end()
	return b.PipeReader.Close()
}

func (s *sink) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // an answer that begins waits for nobody to read; the pipe would
	}
	n, err := s.body.Write(p)
	s.left -= int64(n)
	return n, err
}
func (s *sink) ReadFrom(src io.Reader) (int64, error)        { return exchange.CopyPieces(s, src) }
func (s *sink) Flush() error                                 { return nil }
func (s *sink) SetReadDeadline(time.Time) error              { return http.ErrNotSupported }
func (s *sink) SetWriteDeadline(time.Time) error             { return http.ErrNotSupported }
func (s *sink) EnableFullDuplex() error                      { return nil }
func (s *sink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }

// Finish notes the trailers: they can be read from the answer once the body has ended.
func (s *sink) Finish(trailers http.Header) {
	for key, values := range trailers {
		if s.resp.Trailer == nil {
			s.resp.Trailer = make(http.Header)
		}
		s.resp.Trailer[http.CanonicalHeaderKey(strings.TrimPrefix(key, http.TrailerPrefix))] = values
	}
	s.finished = true
}

// finish ends a body that came in pieces.
func (x *wire) finish() {
	if x.left > 0 {
		_ = x.body.CloseWithError(io.ErrUnexpectedEOF) // the client has been told of more
	}
	_ = x.body.Close() // it has no effect then
}
