package middleware

import (
	"log/slog"

	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// patient returns a logger for the handler of l, or of [slog.Default] if l is nil. The logger blocks a
// request only briefly, even if the handler blocks, for example because it writes to a full pipe.
func patient(l *slog.Logger) *slog.Logger {
	if l == nil {
		l = slog.Default()
	}
	return logqueue.New(l.Handler()).Patient()
}
