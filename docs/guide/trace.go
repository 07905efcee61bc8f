package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

type traceKey struct{}

// traced adds the trace ID of a request to its context (W3C Trace Context).
func traced(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		if parts := strings.Split(r.Header("Traceparent"), "-"); len(parts) >= 4 && len(parts[1]) == 32 {
			r.SetContext(context.WithValue(r.Context(), traceKey{}, parts[1]))
		}
		return next(r)
	}
}

// A traceHandler adds the trace ID to log records with a request's context.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, record slog.Record) error {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		record.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
