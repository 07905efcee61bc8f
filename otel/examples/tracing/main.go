// Command tracing logs a span of OpenTelemetry for each request, and the trace ID with each record of the log.
//
//	go run ./examples/tracing    (in the folder otel)
//	curl 127.0.0.1:3000/users/7
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/otel"
)

// logSpans is an exporter that logs spans. A real service uses an exporter to a collector.
type logSpans struct{ log *slog.Logger }

func (e logSpans) ExportSpans(_ context.Context, spans []trace.ReadOnlySpan) error {
	for _, s := range spans {
		e.log.Info("span", "name", s.Name(), "trace", s.SpanContext().TraceID().String(), "took", s.EndTime().Sub(s.StartTime()))
	}
	return nil
}

func (logSpans) Shutdown(context.Context) error { return nil }

func main() {
	logger := slog.New(otel.LogHandler(slog.NewTextHandler(os.Stderr, nil))) // adds trace_id and span_id
	provider := trace.NewTracerProvider(trace.WithBatcher(logSpans{logger}, trace.WithBatchTimeout(time.Second)))
	err := newApp(dunlin.Config{Addr: "127.0.0.1:3000", Logger: logger}, provider).Run(context.Background())
	if shutdownErr := provider.Shutdown(context.Background()); err == nil { // sends the last spans
		err = shutdownErr
	}
	if err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, provider *trace.TracerProvider) *dunlin.App {
	app := dunlin.New(config)
	app.Install(otel.Tracing(otel.Config{TracerProvider: provider})) // before other features
	app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response {
		app.Config().Logger.InfoContext(r.Context(), "user shown", "id", r.Param("id"))
		return dunlin.Text("user " + r.Param("id") + "\n")
	})
	return app
}
