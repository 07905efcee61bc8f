package middleware

import (
	"log/slog"

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
