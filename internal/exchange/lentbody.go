package exchange

import (
	"io"
	"net/http"
	"sync"
)

// A LentBody is a body for standard handlers whose bytes the pipeline has read already. Handlers may read it on any goroutine,
// and may keep it after the loan of the bytes: then Read fails.
type LentBody struct {
	mu   sync.Mutex
	rest []byte
	over bool
	shut bool // closed by the handler
}

// Lend sets the bytes of the body, which are borrowed until End. Reading begins at the first byte.
func (l *LentBody) Lend(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest, l.shut = b, false
}

func (l *LentBody) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.shut {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close makes later Reads fail.
func (l *LentBody) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	return nil
}

// End ends the loan of the bytes.
func (l *LentBody) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.rest = true, nil
}
