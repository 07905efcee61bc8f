package exchange

import (
	"io"
	"net/http"
	"sync"
)

// A LentBody gives standard handlers a body that the pipeline has read. They may read it on any
// goroutine, and still have it when the loan of the bytes is over.
type LentBody struct {
	mu   sync.Mutex
	rest []byte
	over bool
}

// Lend has the body read b, from its beginning.
func (l *LentBody) Lend(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = b
}

func (l *LentBody) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close does nothing: the body belongs to the request.
func (l *LentBody) Close() error { return nil }

// End ends the loan.
func (l *LentBody) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.rest = true, nil
}
