package middleware

import (
	"log/slog"

	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// patient returns a logger for the handler of l, or of [slog.Default] if l is nil. A request waits
// for it only briefly: a handler that writes to a full pipe blocks until the pipe is read.
func patient(l *slog.Logger) *slog.Logger {
	if l == nil {
		l = slog.Default()
	}
	return logqueue.New(l.Handler()).Patient()
}
