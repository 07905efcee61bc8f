package otel

import (
	"cmp"
	"context"
	"iter"
	"math"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/tally"
	"github.com/dunlinhttp/dunlin/stats"
)

// A Producer exports the statistics of an app to a metric reader of the OpenTelemetry SDK, see
// [metric.WithProducer]. It reads App.Stats and adds no cost to requests. It is safe for concurrent use.
type Producer struct {
	app   *dunlin.App
	began time.Time
}

var _ metric.Producer = (*Producer)(nil)

// NewProducer returns the producer of an app. See [dunlin.Config].RouteStats for the conditions
// under which requests are counted.
func NewProducer(app *dunlin.App) *Producer { return &Producer{app, time.Now()} }

// bounds are the upper bounds of the exported buckets, in seconds. The app's own buckets have the same
// bounds, so that the counts are exact.
var bounds, boundsAt = func() (seconds []float64, at []time.Duration) {
	for shift := 6; shift <= 24; shift++ {
		d := 1024 * time.Nanosecond << shift // 66 µs to 17 s, each twice the bound before
		seconds, at = append(seconds, d.Seconds()), append(at, d)
	}
	return seconds, at
}()

// lastFrom is the lower bound of the app's last bucket, which has no upper bound.
const lastFrom = 7 << 33 * time.Nanosecond // 60 s

// Produce implements metric.Producer.
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	s := p.app.Stats()
	c := collecting{began: p.began, now: time.Now()}
	var duration []metricdata.HistogramDataPoint[float64]
	var requests, active, panics, timeouts []metricdata.DataPoint[int64]
	for _, r := range append(s.Routes, s.Unmatched) {
		route := routeAttributes(&r)
		set := attribute.NewSet(route...)
		duration = append(duration, c.durations(&r, route)...)
		active = append(active, c.point(set, uint64(max(r.InFlight, 0))))
		panics = append(panics, c.point(set, r.Panics))
		timeouts = append(timeouts, c.point(set, r.Timeouts))
		for _, class := range []struct {
			name string
			n    uint64
		}{
			{"1xx", r.Status.Informational}, {"2xx", r.Status.Success}, {"3xx", r.Status.Redirection},
			{"4xx", r.Status.ClientError}, {"5xx", r.Status.ServerError}, {"dropped", r.Status.Dropped},
		} {
			labeled := append(route[:len(route):len(route)], attribute.String("status", class.name))
			requests = append(requests, c.point(attribute.NewSet(labeled...), class.n))
		}
	}
	var shed, held []metricdata.DataPoint[int64]
	for reason, n := range s.Shed {
		shed = append(shed, c.point(attribute.NewSet(attribute.String("reason", reason)), n))
	}
	for use, n := range s.Memory.HeldFor {
		held = append(held, c.point(attribute.NewSet(attribute.String("use", use)), uint64(max(n, 0))))
	}
	none := *attribute.EmptySet()
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scope}, Metrics: []metricdata.Metrics{
		{Name: "http.server.request.duration", Unit: "s", Description: "Duration of HTTP server requests.",
			Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: duration}},
		gauge("http.server.active_requests", "{request}", "Number of active HTTP server requests.", active),
		count("dunlin.http.requests", "{request}", "Requests that have ended, by status class. dropped: no response, or an incomplete one.", requests),
		count("dunlin.http.panics", "{panic}", "Actions that panicked.", panics),
		count("dunlin.http.timeouts", "{request}", "Requests that were answered with 503 while their actions went on.", timeouts),
		count("dunlin.shed", "{event}", "Requests and connections refused, delayed or cut off, by reason.", shed),
		gauge("dunlin.connections.open", "{connection}", "Connections.", []metricdata.DataPoint[int64]{c.point(none, uint64(max(s.Connections.Open, 0)))}),
		count("dunlin.connections.accepted", "{connection}", "Connections that were accepted.", []metricdata.DataPoint[int64]{c.point(none, s.Connections.Accepted)}),
		gauge("dunlin.memory.held", "By", "Memory held for clients, by use.", held),
	}}}, nil
}

// routeAttributes returns the attributes of a route: first the methods, then the pattern as
// registered, the host and the version.
func routeAttributes(r *stats.Route) []attribute.KeyValue {
	method := r.Methods
	if method == "*" || method == "" {
		method = other
	}
	all := []attribute.KeyValue{attribute.String("http.request.method", method)}
	for _, a := range []struct{ name, value string }{{"http.route", r.Pattern}, {"server.address", r.Host}, {"dunlin.version", r.Version}} {
		if a.value != "" {
			all = append(all, attribute.String(a.name, inUTF8(a.value)))
		}
	}
	return all
}

func count(name, unit, about string, points []metricdata.DataPoint[int64]) metricdata.Metrics {
	return metricdata.Metrics{Name: name, Unit: unit, Description: about,
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: points}}
}

func gauge(name, unit, about string, points []metricdata.DataPoint[int64]) metricdata.Metrics {
	return metricdata.Metrics{Name: name, Unit: unit, Description: about,
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, DataPoints: points}}
}

// collecting has the start and the end of the period of the data points.
type collecting struct{ began, now time.Time }

func (c *collecting) point(set attribute.Set, n uint64) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Attributes: set, StartTime: c.began, Time: c.now, Value: int64(min(n, math.MaxInt64))}
}

// durations returns the data points of a route, one for each method, scheme and status of its requests.
func (c *collecting) durations(r *stats.Route, route []attribute.KeyValue) (points []metricdata.HistogramDataPoint[float64]) {
	ended := r.Ended
	if r.Pattern == "" {
		ended = append(ended, unmatched...)
	}
	for _, counted := range ended {
		e := exchange.EndedOf(counted)
		all := append([]attribute.KeyValue{
			attribute.String("http.request.method", cmp.Or(e.Method, other)),
			attribute.String("url.scheme", scheme(e.Secure)),
		}, route[1:]...)
		if e.Status > 0 {
			all = append(all, attribute.Int("http.response.status_code", e.Status))
		}
		switch {
		case e.Dropped:
			all = append(all, attribute.String("error.type", "dropped"))
		case e.Status >= http.StatusInternalServerError:
			all = append(all, attribute.String("error.type", strconv.Itoa(e.Status)))
		}
		points = merge(points, c.histogram(attribute.NewSet(all...), e.Latency.Buckets, e.Latency.Max))
	}
	return points
}

// unmatched are the outcomes of requests for unknown paths and methods. Their series exist from the
// beginning, so that such requests do not create series.
var unmatched = func() (all []tally.Ended) {
	for method := range semantics.Methods {
		for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
			for _, secure := range []bool{false, true} {
				all = append(all, tally.Ended{Outcome: exchange.OutcomeOf(status, method, secure)})
			}
		}
	}
	return all
}()

// merge adds a point to points, or to the existing point with the same attributes. Outcomes that
// the app counts separately can have the same attributes.
func merge(points []metricdata.HistogramDataPoint[float64], p metricdata.HistogramDataPoint[float64]) []metricdata.HistogramDataPoint[float64] {
	for i := range points {
		same := &points[i]
		if same.Attributes.Equals(&p.Attributes) {
			same.Count += p.Count
			same.Sum += p.Sum
			for b, n := range p.BucketCounts {
				same.BucketCounts[b] += n
			}
			if most, ok := p.Max.Value(); ok {
				if m, had := same.Max.Value(); !had || m < most {
					same.Max = p.Max
				}
			}
			return points
		}
	}
	return append(points, p)
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

func (c *collecting) histogram(set attribute.Set, buckets iter.Seq2[time.Duration, uint64], longest time.Duration) metricdata.HistogramDataPoint[float64] {
	h := metricdata.HistogramDataPoint[float64]{
		Attributes: set, StartTime: c.began, Time: c.now, Bounds: bounds, BucketCounts: make([]uint64, len(bounds)+1),
	}
	var last time.Duration
	for end, below := range buckets {
		n := below - h.Count
		h.Count = below
		if n > 0 {
			i := 0
			for i < len(boundsAt) && end > boundsAt[i] {
				i++
			}
			h.BucketCounts[i] += n
			if end == math.MaxInt64 { // the last bucket, of which only the longest duration is known
				h.Sum += float64(n)*lastFrom.Seconds() + max(longest-lastFrom, 0).Seconds()
			} else {
				h.Sum += float64(n) * ((max(last, end-end/4) + end) / 2).Seconds() // the width of a bucket is at most a quarter of its upper bound
			}
		}
		last = end
	}
	if h.Count > 0 {
		h.Max = metricdata.NewExtrema(longest.Seconds())
	}
	return h
}
