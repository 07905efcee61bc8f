package middleware

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// A watchedBody is the body of a request that is sent on, which knows whether that failed because of it: what comes of a client
// may be cut short, malformed, too large or too slow, and says nothing of the server behind.
type watchedBody struct {
	io.ReadCloser

	// Trailers. Those of the client are there when its body has ended, and are passed on under the names that nobody else has given values.
	sent, passedOn http.Header

	mu      sync.Mutex
	reading bool  // somebody waits for more
	closed  bool  // who sends it has given up: what Read says is his doing
	err     error // why there is no more, nil for its end
}

// watchBody returns the request with a body that is watched; nil if it has none.
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

// failure returns why the body could not be read, nil if it could.
func (b *watchedBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// isToBlame reports whether a request has failed because of its body: that could not be read, or more of it was waited for when
// ctx ended.
func (b *watchedBody) isToBlame(ctx context.Context) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil || b.reading && ctx.Err() != nil
}
