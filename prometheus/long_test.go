package prometheus_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/prometheus"
)

// A request that is longer than the lower bound of the app's last bucket, such as a stream, is counted like others.
func TestLongRequests(t *testing.T) {
	for _, took := range []time.Duration{59 * time.Second, 61 * time.Second, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			app := newApp()
			app.Get("/long", func(*dunlin.Request) dunlin.Response { <-time.After(took); return dunlin.NoContent() })
			ask(app, "GET", "/long")
			h := gather(t, app)["http_server_request_duration_seconds{http_request_method=GET,http_route=/long}"].GetHistogram()
			checkHistogram(t, h)
			if sum := h.GetSampleSum(); h.GetSampleCount() != 1 || sum < 0.8*took.Seconds() || sum > 1.2*took.Seconds() {
				t.Errorf("one request of %v: got %d, sum %v s", took, h.GetSampleCount(), sum)
			}
		})
	}
}

// The longest of many such requests does not determine the others. No count decreases when the longest duration increases.
func TestManyLongRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := newApp()
		took := 61 * time.Second
		app.Get("/long", func(*dunlin.Request) dunlin.Response { <-time.After(took); return dunlin.NoContent() })
		var last *dto.Histogram
		for range 10 {
			ask(app, "GET", "/long")
			h := gather(t, app)["http_server_request_duration_seconds{http_request_method=GET,http_route=/long}"].GetHistogram()
			checkHistogram(t, h)
			if last != nil && (len(h.PositiveDelta) != 1 || h.PositiveDelta[0] != last.PositiveDelta[0]+1 || h.PositiveSpan[0].GetOffset() != last.PositiveSpan[0].GetOffset()) {
				t.Fatalf("%v, and one request more: got %v", last, h)
			}
			last = h
			took += time.Minute
		}
		if sum := last.GetSampleSum(); sum < 10*60 || sum > 10*61+10*60 {
			t.Errorf("10 requests of 61 s to 10 minutes: got sum %v s", sum)
		}
	})
}

// Classic buckets have the configured bounds.
func TestBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := newApp()
		var took time.Duration
		app.Get("/wait", func(*dunlin.Request) dunlin.Response { <-time.After(took); return dunlin.NoContent() })
		for ms := 1; ms <= 1100; ms++ {
			took = time.Duration(ms) * time.Millisecond
			ask(app, "GET", "/wait")
		}
		for _, c := range []struct {
			buckets []time.Duration
			want    map[float64]float64 // the expected counts
		}{
			{nil, map[float64]float64{0.0001: 0, 0.001: 0, 0.005: 5, 0.01: 10, 0.025: 25, 0.05: 50, 0.1: 100, 0.25: 250, 0.5: 500, 1: 1000, 2.5: 1100, 5: 1100, 10: 1100}},
			{[]time.Duration{300 * time.Millisecond, 301 * time.Millisecond}, map[float64]float64{0.3: 300, 0.301: 301}},
		} {
			registry := prom.NewRegistry()
			registry.MustRegister(prometheus.Config{Buckets: c.buckets}.Collector(app))
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.Metric {
					h := m.GetHistogram()
					if h.GetSampleCount() != 1100 {
						continue
					}
					checkHistogram(t, h)
					if len(h.Bucket) != len(c.want) {
						t.Errorf("got %d buckets, want %d", len(h.Bucket), len(c.want))
					}
					for _, b := range h.Bucket {
						want, known := c.want[b.GetUpperBound()]
						if got := float64(b.GetCumulativeCount()); !known || math.Abs(got-want) > 3+want/50 {
							t.Errorf("bucket up to %v s: got %v, want %v (%v)", b.GetUpperBound(), got, want, known)
						}
					}
				}
			}
		}
	})
	for _, bad := range [][]time.Duration{{0}, {-1}, {2, 1}, {1, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("buckets %v: got no panic", bad)
				}
			}()
			prometheus.Config{Buckets: bad}.Collector(newApp())
		}()
	}
}

func ExampleConfig() {
	app := dunlin.New(dunlin.Config{})
	app.Get("/metrics", prometheus.Config{Buckets: []time.Duration{
		50 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second,
	}}.Handler(app))
}
