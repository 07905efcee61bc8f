package middleware

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// A watchedBody is the body of a forwarded request. It records errors of the client's body, which
// may be truncated, malformed, too large or too slow: they say nothing about the upstream.
type watchedBody struct {
	io.ReadCloser

	// Trailers: the client's are available after its body has ended. They are forwarded under names
	// that have no values yet.
	sent, passedOn http.Header

	mu      sync.Mutex
	reading bool  // a Read is waiting
	closed  bool  // the transport has given up, so the error of Read is its own
	err     error // the error that ended the body, nil for its regular end
}

// watchBody returns a copy of the request with a watched body, or the request itself and nil if it
// has no body.
func watchBody(req *http.Request) (*http.Request, *watchedBody) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	watched, body := *req, &watchedBody{ReadCloser: req.Body}
	watched.Body = body
	return &watched, body
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.note(true, nil)
	n, err := b.ReadCloser.Read(p)
	b.note(false, err)
	if err == io.EOF {
		for name, values := range b.sent {
			if own, announced := b.passedOn[name]; announced && own == nil {
				b.passedOn[name] = values
			}
		}
	}
	return n, err
}

func (b *watchedBody) note(reading bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = reading
	if err != nil && err != io.EOF && b.err == nil && !b.closed {
		b.err = err
	}
}

func (b *watchedBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

// failure returns the error of reading the body, or nil.
func (b *watchedBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// isToBlame reports whether the body made the request fail: reading it failed, or was still waiting
// when ctx ended.
func (b *watchedBody) isToBlame(ctx context.Context) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil || b.reading && ctx.Err() != nil
}
