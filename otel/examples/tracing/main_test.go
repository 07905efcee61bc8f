package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/otel"
)

func TestSpans(t *testing.T) {
	var logged bytes.Buffer
	logger := slog.New(otel.LogHandler(slog.NewTextHandler(&logged, nil)))
	provider := trace.NewTracerProvider(trace.WithSyncer(logSpans{logger}))
	app := newApp(dunlin.Config{Logger: logger}, provider)
	if status := dunlintest.JSON(t, app, "GET", "/users/7", nil, nil); status != 200 {
		t.Error(status)
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for _, part := range []string{`msg="user shown" id=7 trace_id=`, `msg=span name="GET /users/{id}"`} {
		if !strings.Contains(logged.String(), part) {
			t.Errorf("got a log without %s:\n%s", part, &logged)
		}
	}
}
