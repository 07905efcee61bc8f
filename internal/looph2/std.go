//go:build linux

package looph2

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// StdRequest creates the *http.Request of the request, once, in the same way as net/http's server of HTTP/2.
func (x *Wire) StdRequest() *http.Request {
	if x.std != nil {
		if ctx := x.call.Context(x.Context()); ctx != x.std.Context() {
			std := x.std.WithContext(ctx)
			if b := x.stdBody; b != nil {
				b.withRequest(std)
			}
			x.std = std
		}
		x.rewindStdBody()
		return x.std
	}
	x.kept = true
	req := exchange.NewStdRequest(x, x.s.Method, request.StdFields(x.req.Fields.Len(), x.Headers))
	req.Proto, req.ProtoMajor, req.RequestURI = "HTTP/2.0", 2, string(x.req.Target())
	if x.own.kind == tunnel {
		req.Header[protocolField] = []string{string(x.req.Protocol())}
	}
	if x.req.Expect100 {
		delete(req.Header, "Expect")
	}
	connect := req.RequestURI == ""
	if connect {
		req.RequestURI = req.Host
	}
	req.URL = request.TargetURL(connect, req.RequestURI)
	exchange.AnnounceTrailers(req)
	req = req.WithContext(x.call.Context(x.Context()))
	if x.own.intake == streamed || len(x.whole.Bytes) > 0 || x.hasTrailers() {
		x.stdBody = &stdBody{s: x.own.s, own: x.own, req: req}
		if x.own.intake == streamed {
			x.stdBody.reader = &bodyReader{x: x, own: x.own, limit: math.MaxInt64}
		} else {
			x.stdBody.reader = x.whole.Reader()
		}
		req.Body = x.stdBody
		if most := x.s.Route.MaxBody; most > 0 {
			req.Body = http.MaxBytesReader(nil, x.stdBody, most)
		}
	}
	x.call.SetMatch(req)
	x.std = req
	x.rewindStdBody()
	return x.std
}

func (x *Wire) hasTrailers() bool {
	x.own.s.mu.Lock()
	defer x.own.s.mu.Unlock()
	return x.own.in.trailers != nil
}

// A stdBody is the body of a standard handler's request. Such handlers may read it on any goroutine, even after they have
// returned, so it is closed then.
type stdBody struct {
	s   *session
	own *stream

	mu      sync.Mutex // held by a Read
	setting sync.Mutex // guards the fields below; locked after mu
	req     *http.Request
	reader  io.Reader
	closed  bool
	shut    bool // closed by the handler
}

func (b *stdBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setting.Lock()
	reader, closed := b.reader, b.closed || b.shut
	b.setting.Unlock()
	if closed {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := reader.Read(p)
	if err == io.EOF {
		b.addTrailers()
	}
	return n, exchange.StdBodyError(err)
}

// Close makes Reads fail. The rest of a streamed body is discarded while it arrives.
func (b *stdBody) Close() error {
	b.setting.Lock()
	defer b.setting.Unlock()
	b.shut = true
	if !b.closed { // else the stream may belong to another request
		b.s.mu.Lock()
		defer b.s.mu.Unlock()
		b.own.discard()
	}
	return nil
}

func (b *stdBody) withRequest(req *http.Request) {
	b.setting.Lock()
	defer b.setting.Unlock()
	if b.req != nil {
		b.req = req // receives the trailers
	}
}

// addTrailers adds the trailers of the body to the request.
func (b *stdBody) addTrailers() {
	b.setting.Lock()
	defer b.setting.Unlock()
	if b.req == nil {
		return
	}
	b.s.mu.Lock()
	trailers := b.own.in.trailers
	b.s.mu.Unlock()
	for name, values := range trailers {
		if b.req.Trailer == nil {
			b.req.Trailer = make(http.Header)
		}
		b.req.Trailer[name] = append(b.req.Trailer[name], values...)
	}
	b.req = nil
}

// rewindStdBody lets a standard handler read the bytes again that Request.Bytes has read.
func (x *Wire) rewindStdBody() {
	if x.stdBody == nil || !x.s.Loaded {
		return
	}
	x.stdBody.setting.Lock()
	defer x.stdBody.setting.Unlock()
	x.stdBody.shut = false
	x.stdBody.reader = &exchange.Reader{Rest: x.s.Whole}
	x.std.Body = x.stdBody // Bytes has enforced MaxBody
}

// closeStdBody ends the use of the body by a standard handler. A Read in progress fails.
func (x *Wire) closeStdBody() {
	b := x.stdBody
	if b == nil {
		return
	}
	x.stdBody = nil
	b.setting.Lock()
	b.closed = true
	b.setting.Unlock()
	x.own.s.mu.Lock()
	if x.own.intake == streamed {
		x.own.in.stopped = true
		x.own.hasMoved()
	}
	x.own.s.mu.Unlock()
	b.mu.Lock() // waits until a Read in progress has ended
	//lint:ignore SA2001 the previous holder has finished
	b.mu.Unlock()
}

// A localContext returns the local address of a connection for http.LocalAddrContextKey, like the contexts of net/http.
type localContext struct {
	context.Context
	addr net.Addr
}

func (c *localContext) Value(key any) any {
	if key != http.LocalAddrContextKey {
		return c.Context.Value(key)
	}
	return c.addr
}
