//go:build linux

package looph2

import (
	"io"
	"math"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// OpenStd implements [request.Framing], in the same way as net/http's server of HTTP/2.
func (x *Wire) OpenStd(req *http.Request) (authority bool, body io.Reader) {
	x.kept = true
	req.Proto, req.ProtoMajor, req.RequestURI = "HTTP/2.0", 2, string(x.req.Target())
	if x.own.kind == tunnel {
		req.Header[protocolField] = []string{string(x.req.Protocol())}
	}
	if x.req.Expect100 {
		delete(req.Header, "Expect")
	}
	exchange.AnnounceTrailers(req)
	if authority = req.RequestURI == ""; authority { // an ordinary CONNECT
		req.RequestURI = req.Host
	}
	switch {
	case x.own.intake == streamed:
		body = &bodyReader{x: x, own: x.own, limit: math.MaxInt64}
	case len(x.whole.Bytes) > 0 || x.hasTrailers():
		body = x.whole.Reader()
	}
	return authority, body
}

func (x *Wire) hasTrailers() bool {
	x.own.s.mu.Lock()
	defer x.own.s.mu.Unlock()
	return x.own.in.trailers != nil
}

// StopBody implements [request.Framing].
func (x *Wire) StopBody() {
	own := x.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if own.intake == streamed {
		own.in.stopped = true
		own.hasMoved()
	}
}

// Trailers implements [request.Framing].
func (x *Wire) Trailers(yield func(name, value string) bool) {
	x.own.s.mu.Lock()
	trailers := x.own.in.trailers
	x.own.s.mu.Unlock()
	for name, values := range trailers {
		for _, value := range values {
			if !yield(name, value) {
				return
			}
		}
	}
}
