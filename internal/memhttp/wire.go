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

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A wire is a request and its response.
type wire struct {
	exchange.StdHead // the request; its body is never nil
	server           *exchange.Server
	call             exchange.Call
	s                *exchange.State // the state of the call
	ctx              context.Context
	end              context.CancelFunc
	race             *exchange.Race      // decides whether the action or its timeout comes first
	answer           chan *http.Response // receives the response, or nil if the request has none
	resp             *http.Response      // the response, after it was sent to answer
	body             *io.PipeWriter      // the body of a streamed response
	close            bool                // on a network, the connection would close after the response
	undated          bool                // the response has no Date
	finished         bool                // the streamed body is complete; the pipe is closed when the request ends
	left             int64               // bytes that are missing from a streamed body of known length
	lent             exchange.LentBody   // the body, if it was read before a standard handler runs
}

// Received returns false, because a body is read only when it is needed.
func (x *wire) Received() ([]byte, bool)   { return nil, false }
func (x *wire) Body(limit int64) io.Reader { return x.server.Bounded(x.Req.Body, limit) }
func (x *wire) RefuseBody()                {}

func (x *wire) Context() context.Context { return x.ctx }

func (x *wire) Endable() (ctx context.Context, end context.CancelFunc) {
	x.ctx, end = context.WithCancel(x.ctx)
	return x.ctx, end
}

// StdRequest returns the request in the form of net/http.
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

// Interim reports an interim response to httptrace, as net/http clients do.
func (x *wire) Interim(status int, h http.Header) {
	if trace := httptrace.ContextClientTrace(x.Req.Context()); trace != nil && trace.Got1xxResponse != nil {
		_ = trace.Got1xxResponse(status, textproto.MIMEHeader(h.Clone())) // the error is ignored, because it only tells a client to stop waiting
	}
}

func (x *wire) CloseAfter()         { x.close = true }
func (x *wire) OmitDate()           { x.undated = true }
func (x *wire) Abandoned()          {}
func (x *wire) MayWait()            {}
func (x *wire) Waited()             {}
func (x *wire) Sink() exchange.Sink { return (*sink)(x) }

func (x *wire) Account() *memory.Account {
	return x.server.Budget.Open((*holder)(x), x.server.Client(x).Addr())
}

func (x *wire) ReleaseAccount(a *memory.Account) {
	if !a.CloseIdle() {
		a.Close()
	}
}

// A holder is a wire in the role of a memory.Holder.
type holder wire

func (h *holder) RemoteAddr() netip.AddrPort { return h.server.Client((*wire)(h)) }

// End makes reads of the request body fail.
func (h *holder) End(a *memory.Account) {
	h.server.NoteEnded(h.RemoteAddr(), a)
	_ = h.Req.Body.Close() // a Read that waits returns
}

// A sink is a wire in the role of an exchange.Sink.
type sink wire

// Begin sends the head of a streamed response.
func (x *wire) Begin(a *exchange.Answer, length int64) exchange.Sink {
	if !x.race.Begin() {
		return exchange.LateSink{}
	}
	r, w := io.Pipe()
	resp := x.head(a, length)
	x.left, x.body, x.resp, resp.Body = length, w, resp, body{r, x.end}
	if !x.bodied(a) {
		_ = w.Close() // never fails
	}
	x.answer <- resp
	return (*sink)(x)
}

// A body is the body of a streamed response. Closing it disconnects the client.
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
		return 0, nil // the start of a response does not wait for a reader, unlike a write to the pipe
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

// Finish sets the trailers. A client can read them after the end of the body.
func (s *sink) Finish(trailers http.Header) {
	for key, values := range trailers {
		if s.resp.Trailer == nil {
			s.resp.Trailer = make(http.Header)
		}
		s.resp.Trailer[http.CanonicalHeaderKey(strings.TrimPrefix(key, http.TrailerPrefix))] = values
	}
	s.finished = true
}

// finish ends a streamed body. If the body is shorter than announced, the client gets an error.
func (x *wire) finish() {
	if x.left > 0 {
		_ = x.body.CloseWithError(io.ErrUnexpectedEOF) // the body is shorter than announced
	}
	_ = x.body.Close() // this has no effect after CloseWithError
}
