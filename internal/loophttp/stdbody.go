//go:build linux

package loophttp

import (
	"io"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A stdBody is the request body for a standard handler. Such handlers read on any goroutine: the transport of a proxy during
// the answer, and the handler of an http.TimeoutHandler even after it. Therefore the stdBody is closed when the handler has
// answered: its source belongs to the next request then.
type stdBody struct {
	x      *wire
	req    *http.Request    // gets the trailers
	whole  *exchange.Reader // source of a complete body; nil if the source is x.stream
	closed bool             // guarded by x.mu
	shut   bool             // closed by the handler; guarded by x.mu
}

// Read reads the body.
func (b *stdBody) Read(p []byte) (n int, err error) {
	x := b.x
	x.readMu.Lock()
	defer x.readMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case b.closed || b.shut:
		return 0, http.ErrBodyReadAfterClose
	case b.whole != nil:
		n, err = b.whole.Read(p)
	default:
		n, err = x.stream.readLocked(p)
	}
	if err == io.EOF && b.req != nil {
		b.x.addTrailers(b.req)
		b.req = nil
	}
	return n, exchange.StdBodyError(err)
}

// Close makes later Reads fail. The rest is discarded after the answer.
func (b *stdBody) Close() error {
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	b.shut = true
	return nil
}

// rewindStdBody lets a standard handler read again the bytes that Request.Bytes has read.
func (x *wire) rewindStdBody() {
	if x.stdBody == nil || !x.s.Loaded {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stdBody.shut = false
	x.stdBody.whole = &exchange.Reader{Rest: x.s.Whole}
	x.std.Body = x.stdBody // Bytes has already applied MaxBody
}

// closeStdBody ends the use of the body by a standard handler. A Read under way fails.
func (x *wire) closeStdBody() {
	if x.stdBody == nil {
		return
	}
	x.mu.Lock()
	x.stdBody.closed = true
	x.mu.Unlock()
	if x.body != received {
		x.stream.stop()
	}
	x.stdBody = nil
}

// addTrailers gives req the trailers of a chunked body that was read completely.
func (x *wire) addTrailers(req *http.Request) {
	body := x.chunked
	if x.body != received {
		body = &x.stream.decoder
	}
	if body == nil {
		return
	}
	for i := range body.TrailerLen() {
		if req.Trailer == nil {
			req.Trailer = make(http.Header)
		}
		name, value := body.Trailer(i)
		req.Trailer.Add(string(name), string(value))
	}
}
