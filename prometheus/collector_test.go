package prometheus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/prometheus"
	"github.com/dunlinhttp/dunlin/stats"
)

func newApp() *dunlin.App {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler), RouteStats: stats.On})
	app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response {
		switch r.Param("id") {
		case "none":
			return dunlin.NotFound()
		case "bad":
			return dunlin.Error(errors.New("no"))
		}
		return dunlin.Text("hello")
	})
	app.Handle("*", "/any/{x...}", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
	return app
}

func ask(app http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	return w
}

// gather returns the metrics of an app's collector by name{labels}.
func gather(t *testing.T, app *dunlin.App) map[string]*dto.Metric {
	t.Helper()
	registry := prom.NewRegistry()
	registry.MustRegister(prometheus.NewCollector(app))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.Metric{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
				if l.GetValue() == "" {
					t.Errorf("%s: got an empty label %s", f.GetName(), l.GetName())
				}
			}
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m
		}
	}
	return all
}

func TestCollector(t *testing.T) {
	app := newApp()
	for _, path := range []string{"/users/1", "/users/2", "/users/none", "/users/bad", "/nowhere"} {
		ask(app, "GET", path)
	}
	all := gather(t, app)
	for series, want := range map[string]float64{
		"dunlin_http_requests_total{http_request_method=GET,http_route=/users/{id},status=2xx}":    2,
		"dunlin_http_requests_total{http_request_method=GET,http_route=/users/{id},status=4xx}":    1,
		"dunlin_http_requests_total{http_request_method=GET,http_route=/users/{id},status=5xx}":    1,
		"dunlin_http_requests_total{http_request_method=_OTHER,status=4xx}":                        1,
		"dunlin_http_requests_total{http_request_method=_OTHER,http_route=/any/{x...},status=2xx}": 0,
	} {
		m := all[series]
		if m == nil {
			t.Errorf("got no series %s", series)
		} else if got := m.GetCounter().GetValue(); got != want {
			t.Errorf("got %s: got %v, want %v", series, got, want)
		}
	}
	h := all["http_server_request_duration_seconds{http_request_method=GET,http_route=/users/{id}}"].GetHistogram()
	if h.GetSampleCount() != 4 || h.GetSampleSum() <= 0 || h.GetSchema() != 2 {
		t.Errorf("got histogram %v", h)
	}
	checkHistogram(t, h)
}

func TestCollectorWorkers(t *testing.T) {
	app := newApp()
	ended := make(chan bool)
	app.Go("panics", func(context.Context) error { defer close(ended); panic("broke") })
	app.Go("runs", func(ctx context.Context) error { <-ctx.Done(); return nil })
	dunlintest.Serve(t, app)
	<-ended
	var all map[string]*dto.Metric
	for { // until the panic is counted
		if all = gather(t, app); all["dunlin_worker_panics_total{worker=panics}"].GetCounter().GetValue() == 1 {
			break
		}
	}
	if got := all["dunlin_workers_running{worker=runs}"].GetGauge().GetValue(); got != 1 {
		t.Errorf("%v workers run", got)
	}
}

// checkHistogram checks that a histogram is consistent.
func checkHistogram(t *testing.T, h *dto.Histogram) {
	t.Helper()
	inNative, at := h.GetZeroCount(), int64(0)
	n := uint32(0)
	for _, span := range h.PositiveSpan {
		n += span.GetLength()
	}
	if int(n) != len(h.PositiveDelta) {
		t.Errorf("got %d buckets and %d deltas", n, len(h.PositiveDelta))
	}
	for _, delta := range h.PositiveDelta {
		at += delta
		if at <= 0 {
			t.Errorf("got a bucket of %d", at)
		}
		inNative += uint64(at)
	}
	if inNative != h.GetSampleCount() {
		t.Errorf("got %d requests in native buckets, want %d", inNative, h.GetSampleCount())
	}
	last := uint64(0)
	for _, b := range h.Bucket {
		if b.GetCumulativeCount() < last || b.GetCumulativeCount() > h.GetSampleCount() {
			t.Errorf("classic buckets do not grow: %v", h.Bucket)
		}
		last = b.GetCumulativeCount()
	}
}

// Durations are counted in the correct buckets in both formats.
func TestHistogram(t *testing.T) {
	app := newApp()
	app.Get("/slow", func(*dunlin.Request) dunlin.Response { <-time.After(20 * time.Millisecond); return dunlin.NoContent() })
	ask(app, "GET", "/slow")
	h := gather(t, app)["http_server_request_duration_seconds{http_request_method=GET,http_route=/slow}"].GetHistogram()
	checkHistogram(t, h)
	if len(h.PositiveSpan) != 1 || h.PositiveSpan[0].GetLength() != 1 {
		t.Fatalf("one request: got spans %v", h.PositiveSpan)
	}
	upper := math.Pow(2, float64(h.PositiveSpan[0].GetOffset())/4)
	took := app.Stats().Routes[2].Latency.Max.Seconds()
	if took > upper*1.3 || took < upper/1.6 {
		t.Errorf("request of %v s: got native bucket up to %v", took, upper)
	}
	if sum := h.GetSampleSum(); sum < took*0.8 || sum > took*1.3 {
		t.Errorf("got sum %v for one request of %v s", sum, took)
	}
	for _, b := range h.Bucket {
		if b.GetUpperBound() < took && b.GetCumulativeCount() != 0 || b.GetUpperBound() > took*1.3 && b.GetCumulativeCount() != 1 {
			t.Errorf("request of %v s: got %v", took, h.Bucket)
		}
	}
}

// Requests of clients create no new series.
func TestNoNewSeries(t *testing.T) {
	app := newApp()
	ask(app, "GET", "/users/1")
	before := len(gather(t, app))
	for i := range 20_000 {
		ask(app, fmt.Sprint("M", i%500), fmt.Sprint("/", i))
		ask(app, "GET", fmt.Sprint("/users/", i))
		ask(app, fmt.Sprint("M", i%500), fmt.Sprint("/any/", i, "/", i))
	}
	if after := len(gather(t, app)); after != before {
		t.Errorf("got %d series before and %d after", before, after)
	}
}

func TestHandler(t *testing.T) {
	app := newApp()
	app.Get("/metrics", prometheus.Handler(app))
	ask(app, "GET", "/users/1")
	w := ask(app, "GET", "/metrics")
	text := w.Body.String()
	for _, want := range []string{
		`dunlin_http_requests_total{http_request_method="GET",http_route="/users/{id}",status="2xx"} 1`,
		`http_server_request_duration_seconds_bucket{http_request_method="GET",http_route="/users/{id}",le="+Inf"} 1`,
		"go_goroutines ", "dunlin_connections_open 0", `dunlin_shed_total{reason=`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got a scrape without %s:\n%s", want, text)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: got %s", p.Metric, p.Text)
	}

	w = ask(app, "GET", "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	decoder := expfmt.NewDecoder(bytes.NewReader(w.Body.Bytes()), expfmt.ResponseFormat(w.Header()))
	native := 0
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, m := range family.Metric {
			if family.GetName() == "http_server_request_duration_seconds" && m.GetHistogram().GetSchema() == 2 {
				native++
			}
		}
	}
	if native == 0 {
		t.Error("protobuf: got no native histogram")
	}
}

func Example() {
	app := dunlin.New(dunlin.Config{RouteStats: stats.On, Logger: slog.New(slog.DiscardHandler)})
	app.Get("/hello", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
	app.Get("/metrics", prometheus.Handler(app)) // includes the metrics of Go and of the process

	app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/hello", nil))
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "dunlin_http_requests_total") && strings.Contains(line, `"/hello"`) && strings.Contains(line, "2xx") {
			fmt.Print(line)
		}
	}
	// Output: dunlin_http_requests_total{http_request_method="GET",http_route="/hello",status="2xx"} 1
}
