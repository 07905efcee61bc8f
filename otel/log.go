package otel

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// LogHandler returns a handler that passes records to h. It adds the attributes trace_id, span_id and
// trace_flags of the span in the record's context. Records of slog.InfoContext(r.Context(), ...) and of
// the access log have such a context. The attributes are at the top level even if the logger has a group
// (slog.Logger.WithGroup), because tools that join logs and traces look for them there.
func LogHandler(h slog.Handler) slog.Handler { return &logHandler{Handler: h} }

type logHandler struct {
	slog.Handler // has all attributes and groups

	// These are set for a logger with a group. outer is the handler before the first group. since has
	// the calls of WithAttrs and WithGroup that lead from outer to Handler.
	outer slog.Handler
	since []func(slog.Handler) slog.Handler
}

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	s := trace.SpanContextFromContext(ctx)
	if !s.IsValid() {
		return h.Handler.Handle(ctx, record)
	}
	ids := []slog.Attr{slog.String("trace_id", s.TraceID().String()), slog.String("span_id", s.SpanID().String()), slog.String("trace_flags", s.TraceFlags().String())}
	if h.outer == nil {
		record = record.Clone()
		record.AddAttrs(ids...)
		return h.Handler.Handle(ctx, record)
	}
	own := h.outer.WithAttrs(ids)
	for _, again := range h.since {
		own = again(own)
	}
	return own.Handle(ctx, record)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = slices.Clone(attrs)
	return h.with(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) }, h.outer != nil)
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h // required by slog.Handler
	}
	return h.with(func(to slog.Handler) slog.Handler { return to.WithGroup(name) }, true)
}

// with returns the handler after one more call of WithAttrs or WithGroup, the step. Within a group it
// records the step.
func (h *logHandler) with(step func(slog.Handler) slog.Handler, grouped bool) *logHandler {
	next := &logHandler{Handler: step(h.Handler), outer: h.outer}
	if grouped {
		if next.outer == nil {
			next.outer = h.Handler
		}
		next.since = append(slices.Clip(h.since), step)
	}
	return next
}
