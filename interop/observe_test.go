package interop_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/dunlinhttp/dunlin"
)

func TestPrometheus(t *testing.T) {
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		registry := prometheus.NewRegistry()
		requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "By status."}, []string{"code", "method"})
		sizes := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "response_bytes", Help: "Bodies.", Buckets: []float64{10, 1000}}, nil)
		registry.MustRegister(requests, sizes)
		app.Mount("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{})).Critical()
		app.UseStd(
			func(next http.Handler) http.Handler { return promhttp.InstrumentHandlerCounter(requests, next) },
			func(next http.Handler) http.Handler { return promhttp.InstrumentHandlerResponseSize(sizes, next) },
		)
		app.Get("/ok", func(*dunlin.Request) dunlin.Response { return dunlin.Text("five!") })
		app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("oh") })
	}, func(t *testing.T, url string) {
		for _, path := range []string{"/ok", "/ok", "/panic", "/none"} {
			ask(t, "GET", url+path, "")
		}
		resp, got := ask(t, "GET", url+"/metrics", "")
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("Content-Type: got %q", resp.Header.Get("Content-Type"))
		}
		for _, line := range []string{
			`requests_total{code="200",method="get"} 2`,
			`requests_total{code="500",method="get"} 1`,
			`requests_total{code="404",method="get"} 1`,
			`response_bytes_bucket{le="10"} 2`,
			`response_bytes_count 4`,
		} {
			if !strings.Contains(got, line+"\n") {
				t.Errorf("the metrics lack %s:\n%s", line, got)
			}
		}
	})
}

func TestOpenTelemetry(t *testing.T) {
	var recorder *tracetest.SpanRecorder
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		recorder = tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		app.UseStd(otelhttp.NewMiddleware("server",
			otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{})))
		app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response {
			_, span := trace.SpanFromContext(r.Context()).TracerProvider().Tracer("test").Start(r.Context(), "load user")
			span.End()
			if r.Param("id") == "0" {
				panic("not found")
			}
			return dunlin.Text("user " + r.Param("id"))
		})
	}, func(t *testing.T, url string) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		if _, got := ask(t, "GET", url+"/users/7", "", "Traceparent", parent); got != "user 7" {
			t.Errorf("got %q", got)
		}
		ask(t, "GET", url+"/users/0", "")
		spans := recorder.Ended()
		if len(spans) != 4 {
			t.Fatalf("%d spans, want 4", len(spans))
		}
		load, server, failed := spans[0], spans[1], spans[3]
		if load.Name() != "load user" || load.Parent().SpanID() != server.SpanContext().SpanID() {
			t.Errorf("span of the action: got %q with parent %v, want parent %v", load.Name(), load.Parent().SpanID(), server.SpanContext().SpanID())
		}
		if got := server.SpanContext().TraceID().String(); !strings.Contains(parent, got) || !server.Parent().IsRemote() {
			t.Errorf("the server's span belongs to trace %s, parent %v", got, server.Parent())
		}
		if !has(server, attribute.Int("http.response.status_code", 200)) || !has(server, attribute.Int("http.response.body.size", 6)) {
			t.Errorf("attributes: got %v", server.Attributes())
		}
		if !has(failed, attribute.Int("http.response.status_code", 500)) {
			t.Errorf("attributes of the failure: got %v", failed.Attributes())
		}
	})
}

func has(span sdktrace.ReadOnlySpan, want attribute.KeyValue) bool {
	for _, a := range span.Attributes() {
		if a == want {
			return true
		}
	}
	return false
}
