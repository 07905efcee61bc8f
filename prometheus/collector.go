// Package prometheus exports the statistics of an app to Prometheus: requests, their outcomes and
// latencies by route, connections, memory and refusals. It adds no cost to requests. A scrape takes
// about a microsecond for each route in use. It is a separate module.
//
//	app.Inner("127.0.0.1:9090").Get("/metrics", prometheus.Handler(app)).Critical()
//
// Series are named by the registered route, never by a path or other text of a client, so that
// clients cannot create series.
package prometheus

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/stats"
)

// Config holds the settings of a Collector. A zero field selects its documented default.
type Config struct {
	// Buckets are the upper bounds of the classic latency buckets, in ascending order. Include the
	// thresholds of your latency objectives (SLOs). The app's own histogram has four buckets for each
	// doubling of the duration. If a bound is inside a bucket of the app, the durations in this bucket
	// are assumed to be spread evenly. Native histograms, which Prometheus scrapes by protobuf, do not
	// depend on Buckets. Default: 100 µs, 1, 5, 10, 25, 50, 100, 250 and 500 ms, 1, 2.5, 5 and 10 s.
	Buckets []time.Duration
}

var defaultBuckets = []time.Duration{
	100 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Handler returns an action that answers scrapes with metrics of the app, of the Go runtime and of
// the process. It uses a format that the scraper accepts: text, OpenMetrics, or protobuf, which
// includes native latency histograms. Every client that can send requests to the route may scrape:
// restrict the access by middleware, or use an inner address ([dunlin.App.Inner]).
func Handler(app *dunlin.App) dunlin.Action { return Config{}.Handler(app) }

// Handler is like the function [Handler], with the settings c. It panics for an invalid setting.
func (c Config) Handler(app *dunlin.App) dunlin.Action {
	registry := prom.NewRegistry()
	registry.MustRegister(c.Collector(app), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return dunlin.FromStd(promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry, EnableOpenMetrics: true}))
}

// A Collector collects the statistics of an app for a registry that the program makes. It is safe for
// concurrent use.
type Collector struct {
	app    *dunlin.App
	bounds []time.Duration
}

// NewCollector returns the collector of an app. See [dunlin.Config].RouteStats for the conditions
// under which requests are counted. The series of a route do not have empty labels, so that the series
// of different routes may have different labels. A pedantic registry refuses this.
func NewCollector(app *dunlin.App) *Collector { return Config{}.Collector(app) }

// Collector is like [NewCollector], with the settings c. It panics for an invalid setting.
func (c Config) Collector(app *dunlin.App) *Collector {
	if c.Buckets == nil {
		c.Buckets = defaultBuckets
	}
	for i, b := range c.Buckets {
		if b <= 0 || i > 0 && b <= c.Buckets[i-1] {
			panic(fmt.Sprintf("prometheus: Config.Buckets has %v at %d: each must be positive, and longer than the one before", b, i))
		}
	}
	return &Collector{app, slices.Clone(c.Buckets)}
}

// routeLabels are the labels of routes. Methods and pattern are as registered. Empty labels are
// omitted; host and version are usually empty.
var routeLabels = []string{"http_request_method", "http_route", "server_address", "version"}

// A labeled metric omits empty labels.
type labeled struct{ prom.Metric }

// Write implements prometheus.Metric.
func (m labeled) Write(out *dto.Metric) error {
	err := m.Metric.Write(out)
	all := out.Label
	out.Label = nil
	for _, l := range all {
		if l.GetValue() != "" {
			out.Label = append(out.Label, l)
		}
	}
	return err
}

func describe(name, help string, labels ...string) *prom.Desc {
	return prom.NewDesc(name, help, labels, nil)
}

var (
	requests = describe("dunlin_http_requests_total", "Requests that have ended, by status class. dropped: no response, or an incomplete one.",
		append(routeLabels, "status")...)
	duration  = describe("http_server_request_duration_seconds", "Duration of requests, from when they had been read until their answers were ready.", routeLabels...)
	inFlight  = describe("http_server_active_requests", "Requests that have begun and not ended.", routeLabels...)
	panics    = describe("dunlin_http_panics_total", "Actions that panicked.", routeLabels...)
	timeouts  = describe("dunlin_http_timeouts_total", "Requests that were answered with 503 while their actions went on.", routeLabels...)
	takeovers = describe("dunlin_http_takeovers_total", "Actions that blocked on an event loop.", routeLabels...)

	open     = describe("dunlin_connections_open", "Open connections.")
	accepted = describe("dunlin_connections_accepted_total", "Connections that were accepted.")
	shed     = describe("dunlin_shed_total", "Requests and connections refused, delayed or cut off, by reason.", "reason")
	queued   = describe("dunlin_actions_queued", "Requests that wait for a worker.")
	limit    = describe("dunlin_memory_limit_bytes", "The memory limit; 0: none.")
	budget   = describe("dunlin_memory_budget_bytes", "Limit of the memory held for clients.")
	held     = describe("dunlin_memory_held_bytes", "Memory held for clients, by use.", "use")
	dropped  = describe("dunlin_log_records_dropped_total", "Log records dropped because the logger was too slow.")

	workersRunning = describe("dunlin_workers_running", "Background workers that run.", "worker")
	workerErrors   = describe("dunlin_worker_errors_total", "Background workers that ended with an error.", "worker")
	workerPanics   = describe("dunlin_worker_panics_total", "Background workers that panicked.", "worker")
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prom.Desc) {
	for _, d := range []*prom.Desc{requests, duration, inFlight, panics, timeouts, takeovers, open, accepted, shed, queued, limit, budget, held, dropped, workersRunning, workerErrors, workerPanics} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prom.Metric) {
	s := c.app.Stats()
	gauge := func(d *prom.Desc, v float64, labels ...string) {
		ch <- labeled{prom.MustNewConstMetric(d, prom.GaugeValue, v, labels...)}
	}
	count := func(d *prom.Desc, v uint64, labels ...string) {
		ch <- labeled{prom.MustNewConstMetric(d, prom.CounterValue, float64(v), labels...)}
	}
	seen := map[[4]string]bool{}
	for _, r := range append(s.Routes, s.Unmatched) {
		labels := [4]string{methodOf(&r), r.Pattern, r.Host, r.Version}
		for i := range labels {
			labels[i] = inUTF8(labels[i])
		}
		if seen[labels] {
			continue // cannot happen, because the routes of an app differ in a label; for equal labels a registry refuses all series
		}
		seen[labels] = true
		l := labels[:]
		for _, class := range []struct {
			name string
			n    uint64
		}{
			{"1xx", r.Status.Informational}, {"2xx", r.Status.Success}, {"3xx", r.Status.Redirection},
			{"4xx", r.Status.ClientError}, {"5xx", r.Status.ServerError}, {"dropped", r.Status.Dropped},
		} {
			count(requests, class.n, append(l[:len(l):len(l)], class.name)...)
		}
		ch <- newHistogram(duration, l, c.bounds, r.Latency)
		gauge(inFlight, float64(r.InFlight), l...)
		count(panics, r.Panics, l...)
		count(timeouts, r.Timeouts, l...)
		count(takeovers, r.Takeovers, l...)
	}
	gauge(open, float64(s.Connections.Open))
	count(accepted, s.Connections.Accepted)
	for reason, n := range s.Shed {
		count(shed, n, reason)
	}
	gauge(queued, float64(s.Actions.Queued))
	gauge(limit, float64(s.Memory.Limit))
	gauge(budget, float64(s.Memory.Budget))
	for use, n := range s.Memory.HeldFor {
		gauge(held, float64(n), use)
	}
	count(dropped, s.LogDropped)
	for _, w := range s.Workers {
		name := inUTF8(w.Name)
		gauge(workersRunning, float64(w.Running), name)
		count(workerErrors, w.Errors, name)
		count(workerPanics, w.Panics, name)
	}
}

// inUTF8 returns a label as valid UTF-8, because an invalid label makes the registry refuse the whole
// scrape. Invalid bytes are percent-encoded, as in a URL, so that routes that differ only in such bytes
// stay distinct.
func inUTF8(label string) string {
	if utf8.ValidString(label) {
		return label
	}
	var b strings.Builder
	for rest := label; rest != ""; {
		_, n := utf8.DecodeRuneInString(rest)
		if n == 1 && rest[0] >= utf8.RuneSelf {
			fmt.Fprintf(&b, "%%%02X", rest[0])
		} else {
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return b.String()
}

// methodOf returns the label for the methods of a route: the methods as registered or, for a route for
// any method, _OTHER as in OpenTelemetry.
func methodOf(r *stats.Route) string {
	if r.Methods == "*" || r.Methods == "" {
		return "_OTHER"
	}
	return r.Methods
}
