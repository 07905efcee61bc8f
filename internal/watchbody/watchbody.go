// Package watchbody records errors of reading the body of an outgoing request. The body of a forwarded request comes from a
// client, so its errors say nothing about the upstream server.
package watchbody

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// A Body is the body of an outgoing request. It records errors of reading it: the body may be truncated, malformed, too
// large or too slow. All methods are safe for concurrent use.
type Body struct {
	io.ReadCloser

	// From are trailers that are available after the body has ended. Their values are then copied to the names in To that have no
	// values yet. Both must be set before the first Read, or neither.
	From, To http.Header

	mu      sync.Mutex
	reading bool  // a call of Read waits
	closed  bool  // the transport has closed the body, which causes later errors of Read
	err     error // the error that ended the body, nil for its regular end
}

// Of returns a copy of req whose body is the returned Body. If req has no body, it returns req itself and nil.
func Of(req *http.Request) (*http.Request, *Body) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	watched, body := *req, &Body{ReadCloser: req.Body}
	watched.Body = body
	return &watched, body
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.recordRead(true, nil)
	n, err := b.ReadCloser.Read(p)
	b.recordRead(false, err)
	if err == io.EOF {
		for name, values := range b.From {
			if own, announced := b.To[name]; announced && own == nil {
				b.To[name] = values
			}
		}
	}
	return n, err
}

func (b *Body) recordRead(reading bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = reading
	if err != nil && err != io.EOF && b.err == nil && !b.closed {
		b.err = err
	}
}

// Close implements io.Closer. Later errors of Read are caused by the transport and not recorded.
func (b *Body) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

// Failure returns the error of reading the body, or nil.
func (b *Body) Failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// IsToBlame reports whether the body made the request fail: a call of Read failed, or was still waiting when ctx ended.
func (b *Body) IsToBlame(ctx context.Context) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil || b.reading && ctx.Err() != nil
}
