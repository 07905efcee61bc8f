package otel_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/otel"
)

// No part of a public context is passed on to other services: neither baggage nor, without a provider, the trace.
func TestPublicContextStays(t *testing.T) {
	provider, _ := newProvider()
	none := 0.0
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for name, c := range map[string]otel.Config{
		"traced":                          {TracerProvider: provider},
		"without a provider":              {TracerProvider: noop.NewTracerProvider()},
		"not sampled by Ratio":            {TracerProvider: provider, Ratio: &none},
		"not sampled by a no-op provider": {TracerProvider: noop.NewTracerProvider(), Ratio: &none},
	} {
		c.Public, c.Propagator = true, both
		app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
		app.Install(otel.Tracing(c))
		sent := propagation.MapCarrier{}
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			both.Inject(r.Context(), sent)
			return dunlin.Text("")
		})
		req := httptest.NewRequest("GET", "/", nil)
		req.Header.Set("Traceparent", parent)
		req.Header.Set("Tracestate", "vendor=1")
		req.Header.Set("Baggage", "user.role=admin,tenant=victim")
		app.ServeHTTP(httptest.NewRecorder(), req)
		if strings.Contains(sent["traceparent"], traceID) || sent["baggage"] != "" || sent["tracestate"] != "" {
			t.Errorf("%s: got %v in the calls of the action", name, sent)
		}
	}
}
