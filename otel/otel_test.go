package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/otel"
	"github.com/dunlinhttp/dunlin/stats"
)

// ended receives the spans in the order in which they end.
type ended chan sdk.ReadOnlySpan

func (e ended) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (e ended) OnEnd(s sdk.ReadOnlySpan)                   { e <- s }
func (e ended) Shutdown(context.Context) error             { return nil }
func (e ended) ForceFlush(context.Context) error           { return nil }

func (e ended) next(t *testing.T) sdk.ReadOnlySpan {
	t.Helper()
	select {
	case s := <-e:
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("got no ended span")
		return nil
	}
}

func newProvider() (*sdk.TracerProvider, ended) {
	spans := make(ended, 1000)
	return sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), spans
}

// onEngines runs f on each available engine.
func onEngines(t *testing.T, f func(t *testing.T, app *dunlin.App, serve func() (addr string))) {
	t.Helper()
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler), RouteStats: stats.On}, func(t *testing.T, app *dunlin.App) {
		f(t, app, func() string {
			t.Helper()
			return dunlintest.Serve(t, app)
		})
	})
}

func ask(t *testing.T, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return nil, ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // some bodies are cut off
	return resp, string(body)
}

func attributesOf(s sdk.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	parent  = "00-" + traceID + "-" + spanID + "-01"
)

func routes(app *dunlin.App) {
	app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text(trace.SpanContextFromContext(r.Context()).TraceID().String())
	})
	app.Get("/bad", func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("the cause")) })
	app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("it") })
	app.Get("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
	app.Get("/stream", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, strings.Repeat("x", 100_000)); return err })
	})
	app.Handle("*", "/any", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
}

func TestTracing(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		provider, spans := newProvider()
		app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
		routes(app)
		addr := serve()
		host, port, _ := net.SplitHostPort(addr)
		for _, c := range []struct {
			method, path, name string
			code               codes.Code
			want               map[string]string // "" stands for a missing attribute
		}{
			{"GET", "/users/7", "GET /users/{id}", codes.Unset, map[string]string{
				"http.request.method": "GET", "http.route": "/users/{id}", "url.path": "/users/7", "url.scheme": "http", "server.address": host, "server.port": port,
				"client.address": "127.0.0.1", "network.peer.address": "127.0.0.1", "network.protocol.version": "1.1", "user_agent.original": "tester", "http.response.status_code": "200",
				"http.response.body.size": "32", "error.type": "", "http.request.method_original": "", "url.query": "",
			}},
			{"GET", "/users/7?q=secret&&secret&n=%FF", "GET /users/{id}", codes.Unset, map[string]string{"url.path": "/users/7", "url.query": "q=REDACTED&REDACTED&n=REDACTED"}},
			{"GET", "/nowhere", "GET", codes.Unset, map[string]string{"http.route": "", "http.response.status_code": "404", "dunlin.answer.source": "app", "error.type": ""}},
			{"GET", "/bad", "GET /bad", codes.Error, map[string]string{"http.response.status_code": "500", "error.type": "500"}},
			{"GET", "/panic", "GET /panic", codes.Error, map[string]string{"http.response.status_code": "500", "error.type": "500", "dunlin.answer.source": "panic"}},
			{"GET", "/abort", "GET /abort", codes.Error, map[string]string{"http.response.status_code": "", "error.type": "dropped"}},
			{"GET", "/stream", "GET /stream", codes.Unset, map[string]string{"http.response.status_code": "200", "http.response.body.size": ""}},
			{"BREW", "/any", "HTTP /any", codes.Unset, map[string]string{"http.request.method": "_OTHER", "http.request.method_original": "BREW"}},
		} {
			ask(t, c.method, "http://"+addr+c.path, "User-Agent", "tester")
			s := spans.next(t)
			if s.Name() != c.name || s.SpanKind() != trace.SpanKindServer || s.Status().Code != c.code || s.Parent().IsValid() {
				t.Errorf("%s %s: got span %q of kind %v with status %v and parent %v", c.method, c.path, s.Name(), s.SpanKind(), s.Status(), s.Parent())
			}
			got := attributesOf(s)
			for name, want := range c.want {
				if got[name] != want {
					t.Errorf("%s %s: got %s: got %q, want %q", c.method, c.path, name, got[name], want)
				}
			}
			if c.path == "/bad" && (len(s.Events()) != 1 || s.Events()[0].Name != "exception") {
				t.Errorf("events of a failure: got %v", s.Events())
			}
		}
	})
}

// Trace context is read as W3C specifies, malformed or not, and is passed on to calls.
func TestContext(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		provider, spans := newProvider()
		config := otel.Config{TracerProvider: provider}
		heard := make(chan http.Header, 1)
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { heard <- r.Header }))
		t.Cleanup(other.Close)
		client := &http.Client{Transport: otel.Transport(other.Client().Transport, config)}
		app.Install(otel.Tracing(config))
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			req, err := http.NewRequestWithContext(r.Context(), "GET", strings.Replace(other.URL, "http://", "http://me:secret@", 1)+"/there?token=secret", nil)
			if err != nil {
				return dunlin.Error(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				return dunlin.Error(err)
			}
			resp.Body.Close()
			return dunlin.Text("asked")
		})
		addr := serve()
		for name, c := range map[string]struct {
			headers   []string
			continued bool
			sampled   bool
		}{
			"none":                 {nil, false, true},
			"sampled":              {[]string{"Traceparent", parent, "Tracestate", "a=1,b=2"}, true, true},
			"not sampled":          {[]string{"Traceparent", strings.TrimSuffix(parent, "1") + "0"}, true, false},
			"a later version":      {[]string{"Traceparent", "cc-" + traceID + "-" + spanID + "-01-more"}, true, true},
			"version ff":           {[]string{"Traceparent", "ff" + parent[2:]}, false, true},
			"too short":            {[]string{"Traceparent", parent[:50]}, false, true},
			"no trace":             {[]string{"Traceparent", "00-00000000000000000000000000000000-" + spanID + "-01"}, false, true},
			"no span":              {[]string{"Traceparent", "00-" + traceID + "-0000000000000000-01"}, false, true},
			"capitals":             {[]string{"Traceparent", strings.ToUpper(parent)}, false, true},
			"two":                  {[]string{"Traceparent", parent, "Traceparent", parent}, false, true},
			"a bad state":          {[]string{"Traceparent", parent, "Tracestate", "a=1,a=2"}, true, true},
			"much state":           {[]string{"Traceparent", parent, "Tracestate", strings.Repeat("a=1,", 500)}, true, true},
			"state without parent": {[]string{"Tracestate", "a=1"}, false, true},
		} {
			resp, _ := ask(t, "GET", "http://"+addr, c.headers...)
			if resp == nil || resp.StatusCode != 200 {
				t.Fatalf("%s: got %v", name, resp)
			}
			out := strings.Split((<-heard).Get("Traceparent"), "-")
			if len(out) != 4 || out[1] == traceID != c.continued || out[3] == "01" != c.sampled {
				t.Errorf("%s: got headers %q in the call", name, out)
				continue
			}
			if !c.sampled {
				if len(spans) > 0 {
					t.Errorf("%s: got a span", name)
				}
				continue
			}
			called, served := spans.next(t), spans.next(t)
			if called.Parent().SpanID() != served.SpanContext().SpanID() || called.SpanContext().SpanID().String() != out[2] || called.SpanKind() != trace.SpanKindClient {
				t.Errorf("%s: got span %v of the call with parent %v, want parent %v; sent %q", name, called.SpanContext(), called.Parent(), served.SpanContext(), out)
			}
			if served.Parent().IsRemote() != c.continued || c.continued && served.Parent().SpanID().String() != spanID {
				t.Errorf("%s: got parent %v of the request", name, served.Parent())
			}
			if name == "sampled" && served.SpanContext().TraceState().String() != "a=1,b=2" {
				t.Errorf("got trace state %v", served.SpanContext().TraceState())
			}
			if url := attributesOf(called)["url.full"]; strings.Contains(url, "secret") || !strings.Contains(url, "/there?token=REDACTED") {
				t.Errorf("%s: got url.full %q", name, url)
			}
		}
	})
}

// The trailers of a call are sent, although their values are set only after its body has been read.
func TestCallTrailers(t *testing.T) {
	provider, _ := newProvider()
	config := otel.Config{TracerProvider: provider}
	heard := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		heard <- r.Trailer.Get("Digest")
	}))
	t.Cleanup(other.Close)
	ctx, span := provider.Tracer("").Start(t.Context(), "test")
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, "POST", other.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Trailer = http.Header{"Digest": nil}
	req.Body = io.NopCloser(io.MultiReader(strings.NewReader("body"), readerFunc(func([]byte) (int, error) {
		req.Trailer.Set("Digest", "late")
		return 0, io.EOF
	})))
	resp, err := (&http.Client{Transport: otel.Transport(other.Client().Transport, config)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := <-heard; got != "late" {
		t.Errorf("the trailer is %q", got)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Requests of arbitrary clients are traced only if the service is configured so, not because a client requests it.
func TestPublicAndRatio(t *testing.T) {
	provider, spans := newProvider()
	none, half := 0.0, 2.0
	for name, c := range map[string]struct {
		config  otel.Config
		headers []string
		traced  bool
	}{
		"public, forged":       {otel.Config{Public: true}, []string{"Traceparent", parent}, true},
		"public, none of them": {otel.Config{Public: true, Ratio: &none}, []string{"Traceparent", parent}, false},
		"none":                 {otel.Config{Ratio: &none}, nil, false},
		"none but these":       {otel.Config{Ratio: &none}, []string{"Traceparent", parent}, true},
	} {
		c.config.TracerProvider = provider
		app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
		app.Install(otel.Tracing(c.config))
		routes(app)
		req := httptest.NewRequest("GET", "/users/7", nil)
		for i := 0; i < len(c.headers); i += 2 {
			req.Header.Add(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if len(spans) > 0 != c.traced {
			t.Errorf("%s: got %d spans", name, len(spans))
			continue
		}
		if !c.traced {
			continue
		}
		s := <-spans
		if continued := s.SpanContext().TraceID().String() == traceID; continued == c.config.Public {
			t.Errorf("%s: got trace %v", name, s.SpanContext())
		}
		if c.config.Public && (len(s.Links()) != 1 || s.Links()[0].SpanContext.TraceID().String() != traceID) {
			t.Errorf("%s: got links %v", name, s.Links())
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Ratio 2: got no panic")
		}
	}()
	otel.Tracing(otel.Config{Ratio: &half})
}

// A request that is not sampled allocates nothing.
func TestUnsampledPaysTheCheck(t *testing.T) {
	provider, _ := newProvider()
	none := 0.0
	measure := func(features ...dunlin.Feature) float64 {
		app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
		app.Install(features...)
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
		req, w := httptest.NewRequest("GET", "/", nil), void{http.Header{}}
		return testing.AllocsPerRun(500, func() { app.ServeHTTP(w, req) })
	}
	if more := measure(otel.Tracing(otel.Config{TracerProvider: provider, Ratio: &none})) - measure(); more > 0 {
		t.Errorf("got %v additional allocations", more)
	}
}

type void struct{ header http.Header }

func (v void) Header() http.Header         { return v.header }
func (v void) Write(b []byte) (int, error) { return len(b), nil }
func (v void) WriteHeader(int)             {}

// Fields of maximum size are cut, and methods do not create span names.
func TestOversized(t *testing.T) {
	provider, spans := newProvider()
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
	routes(app)
	req := httptest.NewRequest("GET", "/users/"+strings.Repeat("x", 5000)+"?"+strings.Repeat("x=y&", 500)+strings.Repeat("y", 5000)+"=z", nil)
	req.Header.Set("User-Agent", strings.Repeat("\xff", 5000))
	app.ServeHTTP(httptest.NewRecorder(), req)
	for name, value := range attributesOf(<-spans) {
		if len(value) > 1000 {
			t.Errorf("%s: got %d bytes", name, len(value))
		}
	}
}

func TestLogHandler(t *testing.T) {
	provider := sdk.NewTracerProvider(sdk.WithSyncer(tracetest.NewInMemoryExporter()))
	var b bytes.Buffer
	logger := slog.New(otel.LogHandler(slog.NewJSONHandler(&b, nil))).With("a", 1)
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		logger.InfoContext(r.Context(), "hello", "said", "here")
		return dunlin.NoContent()
	})
	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set("Traceparent", parent)
	app.ServeHTTP(httptest.NewRecorder(), req)
	var line map[string]any
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line["trace_id"] != traceID || len(fmt.Sprint(line["span_id"])) != 16 || line["trace_flags"] != "01" || line["a"] != 1.0 {
		t.Errorf("got %v, %v", line, err)
	}
	b.Reset()
	logger = logger.WithGroup("app").With("b", 2).WithGroup("").WithGroup("sub")
	_ = logger.With("c", 3) // creates another logger
	logger = logger.With("d", 4)
	app.ServeHTTP(httptest.NewRecorder(), req)
	var grouped struct {
		Msg     string
		TraceID string `json:"trace_id"`
		SpanID  string `json:"span_id"`
		A       int
		App     struct {
			B   int
			Sub map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &grouped); err != nil || grouped.Msg != "hello" || grouped.TraceID != traceID || len(grouped.SpanID) != 16 || grouped.A != 1 ||
		grouped.App.B != 2 || len(grouped.App.Sub) != 2 || grouped.App.Sub["d"] != 4.0 || grouped.App.Sub["said"] != "here" {
		t.Errorf("within a group: got %s, %v", b.Bytes(), err)
	}
	b.Reset()
	logger.Info("no trace")
	if strings.Contains(b.String(), "trace_id") {
		t.Error(b.String())
	}
}

func TestProducer(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		routes(app)
		reader := metric.NewManualReader(metric.WithProducer(otel.NewProducer(app)))
		provider := metric.NewMeterProvider(metric.WithReader(reader))
		defer provider.Shutdown(context.Background())
		addr := serve()
		for _, path := range []string{"/users/1", "/users/2", "/users/3?x", "/nowhere", "/elsewhere", "/bad"} {
			ask(t, "GET", "http://"+addr+path)
		}
		gather := func() (metrics map[string]metricdata.Metrics, series int) {
			var all metricdata.ResourceMetrics
			if err := reader.Collect(context.Background(), &all); err != nil {
				t.Fatal(err)
			}
			metrics = map[string]metricdata.Metrics{}
			for _, s := range all.ScopeMetrics {
				for _, m := range s.Metrics {
					metrics[m.Name] = m
					switch d := m.Data.(type) {
					case metricdata.Sum[int64]:
						series += len(d.DataPoints)
					case metricdata.Histogram[float64]:
						series += len(d.DataPoints)
					}
				}
			}
			return metrics, series
		}
		classes := map[string]int64{}
		metrics, before := gather()
		for until := time.Now().Add(30 * time.Second); ; metrics, before = gather() { // a request may be counted after its response
			clear(classes)
			for _, p := range metrics["dunlin.http.requests"].Data.(metricdata.Sum[int64]).DataPoints {
				status, _ := p.Attributes.Value(attribute.Key("status"))
				classes[status.AsString()] += p.Value
			}
			if classes["2xx"] == 3 && classes["4xx"] == 2 && classes["5xx"] == 1 {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("counts by class: got %v", classes)
			}
			<-time.After(time.Millisecond)
		}
		found := false
		for _, p := range metrics["http.server.request.duration"].Data.(metricdata.Histogram[float64]).DataPoints {
			var n uint64
			for _, in := range p.BucketCounts {
				n += in
			}
			if n != p.Count || len(p.BucketCounts) != len(p.Bounds)+1 || p.Count > 0 && p.Sum <= 0 {
				t.Errorf("histogram with count %d: got buckets %v and sum %v", p.Count, p.BucketCounts, p.Sum)
			}
			if route, _ := p.Attributes.Value("http.route"); route.AsString() == "/users/{id}" {
				found = true
				if p.Count != 3 {
					t.Errorf("got %d requests, want 3", p.Count)
				}
			}
		}
		if !found {
			t.Error("got no histogram of the route")
		}
		for i := range 200 {
			ask(t, fmt.Sprint("M", i), fmt.Sprint("http://", addr, "/", i))
		}
		if _, after := gather(); after != before {
			t.Errorf("got %d series before and %d after", before, after)
		}
	})
}

func BenchmarkTracing(b *testing.B) {
	none := 0.0
	for name, feature := range map[string]dunlin.Feature{
		"bare":      dunlin.Hooks{},
		"unsampled": otel.Tracing(otel.Config{TracerProvider: sdk.NewTracerProvider(), Ratio: &none}),
		"sampled":   otel.Tracing(otel.Config{TracerProvider: sdk.NewTracerProvider()}),
	} {
		b.Run(name, func(b *testing.B) {
			app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
			app.Install(feature)
			app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
			req, w := httptest.NewRequest("GET", "/", nil), void{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				app.ServeHTTP(w, req)
			}
		})
	}
}

func Example_setup() {
	app := dunlin.New(dunlin.Config{})
	provider := sdk.NewTracerProvider()
	var exporter metric.Exporter // that of otlpmetrichttp, say

	app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))                              // before other features
	client := &http.Client{Transport: otel.Transport(nil, otel.Config{TracerProvider: provider})} // what actions call
	logger := slog.New(otel.LogHandler(slog.NewJSONHandler(os.Stdout, nil)))                      // trace_id, span_id

	// Metrics:
	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(otel.NewProducer(app)))
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	defer meters.Shutdown(context.Background())

	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		logger.InfoContext(r.Context(), "asking another service", "timeout", client.Timeout)
		return dunlin.NoContent()
	})
}

func Example() {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	app := dunlin.New(dunlin.Config{})
	app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
	app.Get("/users/{id}", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })

	app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/users/7", nil))
	for _, s := range exporter.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output: GET /users/{id}
}
