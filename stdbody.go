package dunlin

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// The body of a request on net/http.

func (x *stdExchange) contentLength() int64 {
	if x.req.Body == nil || x.req.Body == http.NoBody {
		return 0
	}
	return x.req.ContentLength
}

func (x *stdExchange) body(limit int64) io.Reader {
	if x.req.Body == nil || x.req.Body == http.NoBody {
		return &bytesReader{}
	}
	// MaxBytesReader also tells the server not to keep a connection whose body
	// was not read to its end.
	return limitedBody{http.MaxBytesReader(x.w, x.timed(), limit)}
}

// refuseBody closes the connection after the answer: else the server reads a body
// of up to 256 KB before it answers.
func (x *stdExchange) refuseBody() { x.closeAfter() }

// limitedBody gives the errors of MaxBytesReader and of deadlines as problems.
type limitedBody struct{ src io.Reader }

func (b limitedBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = bodyTooLarge(over.Limit) // that of http.MaxBytesHandler may be the lower one
	} else if _, cut := errors.AsType[*ProblemDetails](err); !cut && timedOutIO(err) {
		err = bodyCut(err)
	}
	return n, err
}

// stdRequest returns the request as it came; with a body of our own if there is
// a limit on that, or Bytes has read it.
func (x *stdExchange) stdRequest() *http.Request {
	r := &x.request
	limit := r.maxStdBody()
	switch {
	case r.loaded && len(r.whole) > 0:
		x.ownRequest().Body = r.replayed()
	case x.copied || x.contentLength() == 0:
	case limit > 0:
		body := x.timed()
		x.ownRequest().Body = http.MaxBytesReader(x.w, body, limit)
	default:
		if body := x.timed(); body != x.req.Body {
			x.ownRequest().Body = body
		}
	}
	return x.req
}

// ownRequest makes a copy of the request, once: a handler must not change the one
// that it was given.
func (x *stdExchange) ownRequest() *http.Request {
	if !x.copied {
		own := *x.req
		x.req, x.copied = &own, true
	}
	return x.req
}

// A replayedBody gives standard handlers the body that Bytes has read. They may
// read it on any goroutine, and still hold it when the loan of the bytes is
// over.
type replayedBody struct {
	mu   sync.Mutex
	rest []byte
	over bool
}

// replayed returns the body, from its beginning.
func (r *Request) replayed() *replayedBody {
	if r.replay == nil {
		r.replay = new(replayedBody)
	}
	r.replay.mu.Lock()
	defer r.replay.mu.Unlock()
	r.replay.rest = r.whole
	return r.replay
}

func (b *replayedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close does nothing: the body belongs to the request.
func (b *replayedBody) Close() error { return nil }

// end ends the loan.
func (b *replayedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over, b.rest = true, nil
}
