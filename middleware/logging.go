package middleware

import (
	"log/slog"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// patient returns a logger for the handler of l, or of [slog.Default] if l is nil, for which a request waits a moment at
// most: a handler that writes to a full pipe blocks until that is read.
func patient(l *slog.Logger) *slog.Logger {
	if l == nil {
		l = slog.Default()
	}
	return logqueue.New(l.Handler()).Patient()
}

// A repeated failure is worth a log line, but not one for each request. The zero value is ready for use.
type repeated struct {
	mu     sync.Mutex
	count  int // since the latest line
	logged time.Time
}

// note counts one more. It reports whether a line is due, once a second at most, and how many there have been since the
// line before, this one included.
func (f *repeated) note() (count int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	now := time.Now()
	if !f.logged.IsZero() && now.Sub(f.logged) < time.Second {
		return 0, false
	}
	count, f.count, f.logged = f.count, 0, now
	return count, true
}
